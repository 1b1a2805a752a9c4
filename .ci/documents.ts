// Generates docs/openapi.json, docs/errors.md and docs/tokens.md from the code. Run `bun .ci/documents.ts` after a change of the
// route table or of the error catalogue; a test fails if you forget it.
import { CATALOGUE } from '../src/platform/error-catalogue.ts';
import { documentationAnchor, type ErrorCode } from '../src/platform/errors.ts';
import type { CallerKind } from '../src/platform/tokens/caller.ts';
import { LABELS, LIFETIMES_MS } from '../src/platform/tokens/tokens.ts';
import { stopTestServer } from '../tests/support/database.ts';
import { openTestService } from '../tests/support/service.ts';

/** The API document as a service serves it, as text. */
export async function writeApi(base_url: string): Promise<string> {
  const response = await fetch(`${base_url}/openapi.json`);
  return `${JSON.stringify(await response.json(), null, 2)}\n`;
}

/** The page of all errors. */
export function writeErrors(): string {
  const entries = Object.entries(CATALOGUE).map(([code, { status, message }]) => {
    const anchor = documentationAnchor(code as ErrorCode);
    return `<a id="${anchor}"></a>\n\n## ${code}\n\nStatus ${status}. ${message.replaceAll('<', '&lt;')}\n`;
  });
  return `${INTRODUCTION}\n${entries.join('\n')}`;
}

/** The page of all tokens: what each kind is for, and which calls take it. */
export async function writeTokens(base_url: string): Promise<string> {
  const { paths } = (await (await fetch(`${base_url}/openapi.json`)).json()) as ApiDocument;
  const calls = Object.entries(paths).flatMap(([path, operations]) =>
    Object.entries(operations).map(([method, operation]) => {
      const kinds = operation['x-token-kinds'] ?? [];
      const tokens = operation['x-tokenless'] ? [...kinds, '(none, by origin)'] : kinds;
      return [`\`${method.toUpperCase()} ${path}\``, tokens.length === 0 ? 'none' : tokens.join(', ')];
    }),
  );
  const kinds = Object.entries(PURPOSES).map(([kind, purpose]) => [
    kind,
    `\`${LABELS[kind as CallerKind]}\``,
    describeLifetime(LIFETIMES_MS[kind as CallerKind]),
    purpose,
  ]);
  return [
    TOKENS_INTRODUCTION,
    writeTable(['kind', 'label', 'lasts', 'bearer'], kinds),
    '\n## Calls\n',
    writeTable(['call', 'token'], calls),
    '',
  ].join('\n');
}

interface ApiDocument {
  paths: Record<string, Record<string, { 'x-token-kinds'?: string[]; 'x-tokenless'?: boolean }>>;
}

const PURPOSES: Record<CallerKind, string> = {
  identity: 'an identity: a member of groups, or a guest of a game',
  public: 'the clients of a namespace; it is not secret',
  development: "a client on a developer's machine; its changes are mocked",
  lobby: 'the game server of a lobby',
  player: 'a player, for the game server; no call takes it in the header',
  development_player: 'a player of a development token',
  cloud: 'tools that act for one game',
  service: 'a back end that starts servers in one environment; it can read builds, but not change them',
  device_link: 'a tool that waits for a cloud token; send it in the query or the body',
};

function describeLifetime(lifetime_ms: number): string {
  const minutes = lifetime_ms / 60_000;
  if (minutes < 24 * 60) return `${minutes} min`;
  const days = minutes / (24 * 60);
  return days < 365 ? `${days} days` : `${days / 365} × 365 days`;
}

/** A table of Markdown, its columns aligned as the formatter aligns them. */
export function writeTable(head: string[], rows: string[][]): string {
  const widths = head.map((_, column) => Math.max(...[head, ...rows].map((row) => row[column]?.length ?? 0)));
  const writeRow = (row: string[]) => `| ${row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(' | ')} |`;
  return [writeRow(head), writeRow(widths.map((width) => '-'.repeat(width))), ...rows.map(writeRow)].join('\n');
}

const TOKENS_INTRODUCTION = `# Tokens

Generated from the routes by \`bun .ci/documents.ts\`.

Send a token as \`Authorization: Bearer TOKEN\`. Its label, the text before the first dot, names its kind.

- A call that does not accept tokens of a kind answers \`401 CLAIMS_MISSING_ENTITLEMENT\`. A call below
  \`/games/{game_id}/environments\` that does not accept a service token answers \`403 API_FORBIDDEN\`.
- An identity token has access to the games of its groups, or to all as an administrator; a cloud token to its game; a
  service token to its environment.
- The identity token of a game's guest lasts 180 days, the administrator's 365 days.
- "none, by origin" means that pages of a namespace's own domains need no token if the namespace allows it.

## Kinds
`;

const INTRODUCTION = `# Errors

Generated from \`src/platform/error-catalogue.ts\` by \`bun .ci/documents.ts\`. A running service shows it at
\`/docs/errors\`.

Every error has a body with \`code\`, \`message\`, \`ray_id\` (also in the header \`rvt-ray-id\`), \`documentation\` and,
for some codes, \`metadata\` for programs. The service fills in the parts in braces. Answers with status 503 have
\`Retry-After\`, in seconds.
`;

if (import.meta.main) {
  await using opened = await openTestService();
  await Bun.write('docs/openapi.json', await writeApi(opened.api.base_url));
  await Bun.write('docs/errors.md', writeErrors());
  await Bun.write('docs/tokens.md', await writeTokens(opened.api.base_url));
  await opened[Symbol.asyncDispose]();
  await stopTestServer();
}
