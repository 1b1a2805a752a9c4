// Generates docs/openapi.json, docs/errors.md, docs/tokens.md, docs/cli.md, docs/settings.md, docs/muster.schema.json and the
// hub's types from the code. Run `bun .ci/documents.ts` after a change of the route table, the error catalogue, the settings or
// the commands; a test fails if you forget it.
import type { Command } from 'commander';
import { createProgram } from '../src/cli/program.ts';
import { listUsageNames, usageOf } from '../src/commands/usages.ts';
import { CATALOGUE } from '../src/platform/error-catalogue.ts';
import { documentationAnchor, type ErrorCode } from '../src/platform/errors.ts';
import type { CallerKind } from '../src/platform/tokens/caller.ts';
import { LABELS, LIFETIMES_MS } from '../src/platform/tokens/tokens.ts';
import { stopTestServer } from '../tests/support/database/database.ts';
import { openTestService } from '../tests/support/service.ts';
import { CLI_FLOWS, LIVE_FLOWS } from './cli-flows.ts';
import { JSON_KEYS, OWN_JSON_KEYS } from './cli-json.ts';
import { HUB_TYPES, writeHubTypes } from './hub-types.ts';
import { projectSchema } from './project-schema.ts';
import { writeSettings } from './settings-page.ts';

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

/** The JSON schema of muster.yaml, as text. */
export function writeSchema(): string {
  return `${JSON.stringify(projectSchema(), null, 2)}\n`;
}

/** The page of all commands. */
export function writeCommands(): string {
  const commands = createProgram().commands.flatMap((command) =>
    command.commands.length === 0 ? [command] : [...command.commands],
  );
  const shapes = Object.entries({ ...JSON_KEYS, ...OWN_JSON_KEYS }).map(([name, keys]) => [`\`${name}\``, keys]);
  const json = `${JSON_INTRODUCTION}${writeTable(['command', 'keys'], shapes)}\n`;
  const of_machine = listUsageNames().map((name) => `### muster ${name}\n\n\`\`\`\n${usageOf(name)}\n\`\`\`\n`);
  return [COMMANDS_INTRODUCTION, FLOWS, json, ...commands.map(writeCommand), MACHINE_INTRODUCTION, ...of_machine].join(
    '\n',
  );
}

/** The section of a command, without the options that all have. */
function writeCommand(command: Command): string {
  const names = [command.parent?.name(), command.name()].filter((name) => name !== 'muster');
  const own = command.options.filter(({ long }) => !SHARED_OPTIONS.has(long ?? ''));
  const options = own.map(({ flags, description, defaultValue }) => {
    const fallback = typeof defaultValue === 'string' ? `; by default ${defaultValue}` : '';
    return [`\`${flags}\``, description + fallback];
  });
  const choices = command.registeredArguments.flatMap(({ argChoices = [] }) => argChoices);
  const chosen = choices.length > 0 ? ` (${choices.slice(0, -1).join(', ')} or ${choices.at(-1)})` : '';
  return [
    `## muster ${names.join(' ')}\n`,
    `\`muster ${[...names, command.usage().replace('[options]', '').trim()].join(' ').trim()}\`${chosen}: ${command.description()}\n`,
    ...(options.length > 0 ? [`${writeTable(['option', 'what'], options)}\n`] : []),
  ].join('\n');
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
  share: 'anyone who was sent a [share link](hub.md#share-links): reads one namespace, or one lobby; 7 days by default',
  metrics: 'a program that reads [the metrics](monitoring.md#metrics-for-prometheus), and nothing else',
  device_link: 'a tool that waits for a cloud token; send it in the query or the body',
};

function describeLifetime(lifetime_ms: number): string {
  const minutes = lifetime_ms / 60_000;
  if (minutes < 24 * 60) return `${minutes} min`;
  const days = minutes / (24 * 60);
  return days <= 365 ? `${days} days` : `${days / 365} × 365 days`;
}

/** A table of Markdown, its columns aligned as the formatter aligns them. */
export function writeTable(head: string[], rows: string[][]): string {
  const widths = head.map((_, column) => Math.max(...[head, ...rows].map((row) => row[column]?.length ?? 0)));
  const writeRow = (row: string[]) => `| ${row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(' | ')} |`;
  return [writeRow(head), writeRow(widths.map((width) => '-'.repeat(width))), ...rows.map(writeRow)].join('\n');
}

const TOKENS_INTRODUCTION = `# Tokens

Generated from the routes by \`bun .ci/documents.ts\`.

Send a token as \`Authorization: Bearer TOKEN\`. Its label, the text before the first dot, names its kind. The labels of
development and public tokens end with the name of their namespace: \`dev_prod\`, \`pub_prod\`.

- A call that does not accept tokens of a kind answers \`401 CLAIMS_MISSING_ENTITLEMENT\`. A call below
  \`/games/{game_id}/environments\` that does not accept a service token answers \`403 API_FORBIDDEN\`.
- An identity token has access to the games of its groups, or to all if it is an administrator's; a cloud token to its
  game; a service token to its environment. \`/cloud/service\`, \`/cloud/machines\`, \`/cloud/audit-log\` and
  \`POST /group/groups\` need an administrator's.
- \`GET /metrics\`, which is not in the table, takes a metrics token, or an administrator's identity token.
- The identity token of a game's guest lasts 180 days, the administrator's 365 days.
- "none, by origin" means that pages of a namespace's own domains need no token, unless the namespace disallows it.

## Kinds
`;

const SHARED_OPTIONS = new Set(['--url', '--token', '--game', '--namespace', '--json']);

const COMMANDS_INTRODUCTION = `# The command line

Generated from the commands by \`bun .ci/documents.ts\`. [The last section](#the-machine-of-a-service) has the commands
that run on the machine of a service; all others talk to a service.

These commands talk to a service, on this machine or another. They find it by \`--url\`, by \`MUSTER_URL\`, by the profile
of \`muster use\`, or at \`http://127.0.0.1:8080\`; the token by \`--token\` (\`-\` reads it from standard input), by
\`MUSTER_TOKEN\`, by \`muster login\`, or, on the machine of the service, in its data directory. \`--game\` and
\`--namespace\` (\`MUSTER_GAME\`, \`MUSTER_NAMESPACE\`) take a name or an id. By default the game is that of the folder's
\`muster.yaml\`, of the profile, or the only one, and the namespace is that of the profile, or \`prod\`.
\`muster lobbies\`, \`muster servers\` and \`muster versions\` alone are \`… list\`, with its options.

A _profile_ is an address with, optionally, a game and a namespace, which later commands take by default.
\`muster use play --url https://play.example.com --game tanks --namespace staging\` creates or changes the profile
\`play\` and selects it, and \`muster use play\` selects it again. The name may be an address: \`muster use ADDRESS\`. The
first login creates the profile \`default\`. Profiles are in \`~/.config/muster/profiles.json\`. The tokens of logins are
beside it in \`credentials.json\`, by address: one of a person, or one for each game that a link was completed for, of
which a command takes that of its game. \`localhost\` and \`127.0.0.1\` are one service. A profile has no token, and
\`MUSTER_TOKEN\` comes before all logins.

On the machine of a service with \`MUSTER_TLS_LOCAL\`, the commands trust its certificate. Elsewhere, name the file of
its authority: \`NODE_EXTRA_CA_CERTS=local-ca.pem\`.

Data goes to stdout, messages to stderr. \`--json\` writes what the API answered: one object; commands that keep
running write one object per line. \`complete\`, \`serve\`, \`test\`, \`openapi\` and \`help\`, whose output is their own, do
not have it. In what a terminal shows, control characters of names and logs are replaced; in JSON, they are escaped.
Sizes in kB and MB are powers of 1,000, in KiB and MiB of 1,024. (Settings of the service count MiB, also those whose
names end with \`_MB\`.) A command that fails writes a sentence to stderr; with \`--json\`, the last line there is an
object \`error\` with \`exit_code\`, \`message\` and, of a refused request, \`code\`, \`ray_id\` and \`metadata\`. A lobby or
server may be given by the beginning or end of its id.

| exit code | what                                                         |
| --------- | ------------------------------------------------------------ |
| 0         | done                                                         |
| 1         | refused or failed, with the code, what to do, and the ray id |
| 2         | wrong use                                                    |
| 3         | not logged in                                                |
| 4         | not found                                                    |
| 5         | timed out                                                    |
| 130       | interrupted                                                  |

## muster.yaml

\`muster init\` writes it and \`muster deploy\` reads it:

\`\`\`yaml
game: tanks # the game's name; created if it is missing, with the token of a person
build:
  path: server # a script with what it imports, or a directory, of which .musterignore leaves files out
  # dockerfile: Dockerfile # instead: is built here, by docker, podman or buildah; args are its build arguments
  # platform: linux/amd64 # of the dockerfile's image, if the service's machine has a different one from yours
  command: [./tanks] # for a directory: its program
  # isolation: container # for a directory: runs in a container on the image of the service's operator
site: public # the files of the static site
matchmaker: # this and every other key: the version's configuration, as in the API
  max_players: 8
  game_modes: { default: {} }
  docker: { ports: { game: { port: 80, protocol: http } } }
\`\`\`

\`muster dev\` runs the game on this machine: it starts the service unless one runs (\`MUSTER_PORT\`, its data in
\`muster-data\`, or \`/var/lib/muster\` as root in a folder that others cannot enter; its log is \`service.log\` there),
creates the game, and puts every saved change live once a lobby of it becomes ready; lobbies of older versions end
then. Those with players are closed first, and end two seconds later: a client that watches
\`/matchmaker/lobbies/{lobby_id}\` ([watch](watch.md)) sees \`is_closed\`, then \`MATCHMAKER_LOBBY_STOPPED\`, and finds a
seat in the new version. A service that runs already, but not with the data of this folder, may be one that others
play on: the command asks before it uses that, and without a terminal needs \`--yes\`. In a terminal, it listens for
keys, and the game's site opens, or the hub if the game has none. The key q or ctrl-C ends the service that it
started, with all game servers, also those that wait to start; a service that ran before goes on. A verification
server of the game may be on this machine. On a machine whose ports people reach by https (GitHub Codespaces, Gitpod
and others), it says at which addresses, and what to make public.

Unknown keys are refused. [muster.schema.json](muster.schema.json) has all of them. A service serves it at
\`/muster.schema.json\`, and \`muster init\` names that address in the file's first line, for editors;
\`muster config schema\` writes it too. Files that usually hold secrets, such as \`.env\` and \`*.key\`, are not deployed,
unless a line like \`!.env\` in \`.musterignore\` says so. A data directory of Muster is not deployed either; if the folder
itself is one, the deploy is refused. The build of a Dockerfile does not get these files either. With docker, this needs
buildx. Without buildx, the files can get into the image; the command lists them, so that you can name them in
\`.dockerignore\`.

Links that lead nowhere, and files whose names are not UTF-8, are left out; the deploy names them. \`muster config check\`
finds most mistakes without a service. A deploy makes the same checks before it creates or sends anything.

Without \`muster.yaml\`, a deploy takes a configuration of Rivet (\`rivet.json\`, \`rivet.yaml\`, \`rivet.toml\`,
\`rivet.version.toml\`) as it is, says what it understood and what it left out, and refuses what has no counterpart.
\`muster init\` translates it to \`muster.yaml\`. A deploy leaves out the regions that the service does not have;
\`muster init\` leaves out all that \`--region\` does not name. \`--region lnd-fra=frankfurt\` gives one its name here. Beside
\`muster.yaml\`, which has the service's names, a deploy refuses \`--region\`.

A deploy checks the new version: it finds a seat in the namespace \`deploy-check\`, in the first game mode where a token
is enough (a proof of work is solved). If the lobby of that seat does not become ready, the deploy shows its log and
changes nothing. The lobby has the time of a request (50 s by default), as for a player; in a game mode with
\`idle_lobbies\`, which become ready before players come, five minutes. \`--no-check\` switches without a check. ctrl-C
during the check ends the checked lobby, and switches nothing. Lobbies of other versions go on until they end, and no
find gives a seat in them; \`--wait\` waits for their end. With \`--detach\`, the check and the switch go on in the
background once everything is uploaded, and the command prints the path of the file with their output.
\`muster deploy prod --version NAME\` puts \`prod\` on an existing version, such as the one that is live in \`staging\`,
after a check of it.

A script (\`build.path: server.ts\`) is sent with the files and packages that it imports, as one file. Of a directory,
links to files and to other directories are followed.

\`muster bots\` fails after a fault, which must not happen to any player: no connection to a seat, no answer to a find, an
over-filled lobby, one seat for two players, or a seat in another game mode, in a closed lobby or in one of an old
version. It also fails if a limit of your address refused bots, or if no bot got a seat. All of them come from one
address, whose limits refuse more than a few: by default 16 finds a minute ([limits](limits.md#rate-limits)) and 8
players in a namespace ([limits of a namespace](hub.md#limits-of-a-namespace)). The command says so and how to raise
them. Other refusals are counted, and do not fail it. ctrl-C ends the bots early, and their figures until then are
shown. If no bot got a seat, the figures have no find times.

The tab key completes commands, options, ids of lobbies, servers and machines, and names of games, namespaces, versions,
game modes and profiles. A version whose name has a space or a sign that shells read is offered by its id.

- bash: \`source <(muster complete bash)\` in \`~/.bashrc\`
- zsh: \`source <(muster complete zsh)\` in \`~/.zshrc\`, after \`compinit\`
- fish: \`muster complete fish | source\` in \`~/.config/fish/config.fish\`
`;

const FLOWS = `## From a folder to players

In a folder with \`server.ts\`, which is [examples/room.ts](../examples/room.ts), and a page in \`public/\`:

\`\`\`
${CLI_FLOWS.trimEnd()}
\`\`\`

These go on in a terminal. A line with \`#\` says what happens meanwhile:

\`\`\`
${LIVE_FLOWS.trimEnd()}
\`\`\`
`;

const JSON_INTRODUCTION = `## JSON

With \`--json\`, a command writes one object with these keys, which stay in later releases. Those with a question mark
are missing where they have no value. What is in them is the API's, of which [openapi.json](openapi.json) has the
shapes. \`api\` and \`watch\` write what the API answers, and \`logs\` writes a line for each line of the log: \`ts\`,
\`stream\`, \`line\` and, of several servers, \`server_id\`. \`dev\` writes a line for each \`event\`: \`ready\`, \`live\`,
\`failed\`, \`log\`, \`server_ended\`, \`lobbies_ended\` and \`bots\`. Of the commands for the machine itself, \`serve\` writes
its log, \`test\` what its command writes, and \`openapi\` the document.

`;

const MACHINE_INTRODUCTION = `## The machine of a service

These commands start a service, or work on its data. They need Linux, except \`version\`. Their settings come from the
environment; \`muster --help\` lists all.
`;

const INTRODUCTION = `# Errors

Generated from \`src/platform/error-catalogue.ts\` by \`bun .ci/documents.ts\`. A running service shows it at
\`/docs/errors\`.

Every error of the API has a body with \`code\`, \`message\`, \`ray_id\` (also in the header \`rvt-ray-id\`), \`documentation\`
and, for some codes, \`metadata\` for programs. The service fills in the parts in braces. Answers with status 503 or 429
have \`Retry-After\`, in seconds, unless waiting does not help, as with the total of \`UPLOAD_QUOTA_REACHED\`. Sites answer
with text, the gateway shows browsers a page, and the registry of images (\`/v2/\`) answers as its specification says.
`;

if (import.meta.main) {
  await Bun.write('docs/muster.schema.json', writeSchema());
  await using opened = await openTestService();
  const api = await writeApi(opened.api.base_url);
  await Bun.write('docs/openapi.json', api);
  await Bun.write(HUB_TYPES, await writeHubTypes(api));
  await Bun.write('docs/errors.md', writeErrors());
  await Bun.write('docs/cli.md', writeCommands());
  await Bun.write('docs/settings.md', writeSettings());
  await Bun.write('docs/tokens.md', await writeTokens(opened.api.base_url));
  await opened[Symbol.asyncDispose]();
  await stopTestServer();
}
