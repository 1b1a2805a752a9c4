import { afterAll, beforeAll, expect, test } from 'bun:test';
import { openInspector } from '../support/inspector.ts';
import { openTestService, type TestService } from '../support/service.ts';
import { makeTenant, type Tenant } from '../support/tenant.ts';

/** Open to every caller by design: profiles of groups and people, and operations without a token. */
const OPEN =
  /^\/(group|identity|portal|health|uploads)|^\/cloud\/(bootstrap|region-tiers|devices\/links$|rays|auth)|^\/auth/;

let opened: TestService;
let ours: Tenant;
let theirs: Tenant;
beforeAll(async () => {
  opened = await openTestService();
  [ours, theirs] = await Promise.all([makeTenant(opened), makeTenant(opened)]);
  await using inspector = openInspector(opened);
  await inspector.waitForPlayerCounts();
}, 300_000);
afterAll(() => opened[Symbol.asyncDispose]());

interface Case {
  method: string;
  path: string;
  token: string;
  body: unknown;
  /** The ids of the other tenant that are in the request: an error may repeat them. */
  named: Set<string>;
}

/** Yields each way to mix ids of both tenants, with at least one of the other. */
function* mixtures(names: string[], mine: Tenant, other: Tenant): Generator<Record<string, string>> {
  for (let bits = 1; bits < 2 ** names.length; bits += 1) {
    const owners = names.map((name, index) => [name, (bits >> index) & 1 ? other : mine] as const);
    yield Object.fromEntries(owners.map(([name, { ids }]) => [name, ids[name] ?? crypto.randomUUID()]));
  }
}

/** Bodies that contain ids, by operation. */
const BODIES: Record<string, (ids: Record<string, string>) => unknown> = {
  'POST /matchmaker/lobbies/join': ({ lobby_id }) => ({ lobby_id }),
  'POST /v1/lobbies/join': ({ lobby_id }) => ({ lobby_id }),
  'POST /matchmaker/players/connected': ({ player_token }) => ({ player_token }),
  'POST /matchmaker/players/disconnected': ({ player_token }) => ({ player_token }),
  'PUT /cloud/games/{game_id}/namespaces/{namespace_id}/version': ({ version_id }) => ({ version_id }),
  'POST /cloud/games/{game_id}/namespaces/{namespace_id}/matchmaker/verification/try': ({ lobby_id }) => ({
    kind: 'find',
    game_mode: 'default',
    lobby_id,
  }),
  'POST /cloud/games/{game_id}/namespaces': ({ version_id }) => ({ display_name: 'X', name_id: 'x', version_id }),
  'POST /cloud/games': ({ group_id }) => ({ display_name: 'X', developer_group_id: group_id }),
  'POST /cloud/games/{game_id}/versions': ({ image_id, site_id }) => ({
    display_name: `${image_id}`,
    config: { cdn: { site_id }, matchmaker: { game_modes: { default: {} }, docker: { image_id } } },
  }),
  'POST /games/{game_id}/environments/{environment_id}/servers': ({ build_id }) => ({
    datacenter: crypto.randomUUID(),
    tags: {},
    runtime: { build: build_id },
    network: { ports: {} },
    resources: { cpu: 100, memory: 100 },
  }),
};

const IN_BODY: Record<string, string[]> = {
  '/matchmaker/lobbies/join': ['lobby_id'],
  '/v1/lobbies/join': ['lobby_id'],
  '/matchmaker/players/connected': ['player_token'],
  '/matchmaker/players/disconnected': ['player_token'],
  '/cloud/games/{game_id}/namespaces/{namespace_id}/version': ['version_id'],
  '/cloud/games/{game_id}/namespaces/{namespace_id}/matchmaker/verification/try': ['lobby_id'],
  '/cloud/games/{game_id}/namespaces': ['version_id'],
  '/cloud/games': ['group_id'],
  '/cloud/games/{game_id}/versions': ['image_id', 'site_id'],
  '/games/{game_id}/environments/{environment_id}/servers': ['build_id'],
};

async function listCases(mine: Tenant, other: Tenant): Promise<Case[]> {
  const { paths } = await opened.api.ok('GET', '/openapi.json');
  const cases: Case[] = [];
  for (const [template, methods] of Object.entries<object>(paths)) {
    if (OPEN.test(template)) continue;
    const in_path = [...template.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name);
    for (const method of Object.keys(methods).map((name) => name.toUpperCase())) {
      const bodyOf = BODIES[`${method} ${template}`];
      const names = [...in_path.filter((name) => name in other.ids), ...(bodyOf ? (IN_BODY[template] ?? []) : [])];
      if (method === 'GET' && template.endsWith('/servers')) names.push('cursor');
      for (const ids of mixtures(names, mine, other)) {
        const filled = template.replace(/\{(\w+)\}/g, (_, name) => encodeURIComponent(ids[name] ?? 'unknown'));
        const query = 'cursor' in ids ? `?cursor=${ids.cursor}&include_destroyed=true` : '';
        const stream = /\/(logs|log-lines|log-search)$/.test(template) ? '?stream=std_out&search_text=a' : '';
        const named = new Set(Object.values(ids).filter((id) => Object.values(other.ids).includes(id)));
        for (const token of Object.values(mine.tokens)) {
          for (const path of new Set([`${filled}${query}${stream}`, `${upperCaseIds(filled)}${query}${stream}`])) {
            cases.push({ method, path, token, body: method === 'GET' ? undefined : (bodyOf?.(ids) ?? {}), named });
          }
        }
      }
    }
  }
  return cases;
}

/** Returns the path with upper-case ids, which must count as equal. */
function upperCaseIds(path: string): string {
  return path.replace(/[0-9a-f]{8}-[0-9a-f-]{27}/g, (id) => id.toUpperCase());
}

/** Returns everything of a tenant that another could change. */
async function readAll({ game, tokens }: Tenant): Promise<unknown> {
  const { game_id, namespace_id, group_id } = game;
  const paths = [
    `/cloud/games/${game_id}`,
    `/cloud/games/${game_id}/namespaces/${namespace_id}`,
    `/cloud/games/${game_id}/namespaces/${namespace_id}/version-history`,
    `/cloud/games/${game_id}/namespaces/${namespace_id}/logs/lobbies`,
    `/cloud/games/${game_id}/namespaces/${namespace_id}/analytics/matchmaker/live`,
    `/cloud/games/${game_id}/builds`,
    `/cloud/games/${game_id}/cdn/sites`,
    `/cloud/games/${game_id}/avatars`,
    `/games/${game_id}/environments/${namespace_id}/servers?include_destroyed=true`,
  ];
  const answers = await Promise.all(paths.map((path) => opened.api.ok('GET', path, { token: tokens.cloud })));
  const members = await opened.api.ok('GET', `/group/groups/${group_id}/profile`, { token: tokens.identity });
  return [...answers, members];
}

test("tenants: no mix of ids reads or changes another tenant's things", async () => {
  const before = await Promise.all([readAll(ours), readAll(theirs)]);
  let count = 0;
  const leaks: string[] = [];
  for (const [mine, other] of [
    [ours, theirs],
    [theirs, ours],
  ] as const) {
    const secrets = [...Object.values(other.ids), ...Object.values(other.tokens)];
    for (const { method, path, token, body, named } of await listCases(mine, other)) {
      count += 1;
      const answer = await opened.api.call(method, path, { token, body });
      const text = JSON.stringify(answer.body);
      const leaked = secrets.filter((secret) => text.includes(secret) && !(answer.status !== 200 && named.has(secret)));
      if (leaked.length > 0 || answer.status >= 500)
        leaks.push(`${method} ${path}: ${answer.status} ${text.slice(0, 200)}`);
    }
  }
  console.log(`${count} cases`);
  expect(leaks.slice(0, 10)).toEqual([]);
  expect(count).toBeGreaterThan(5_000);
  expect(await Promise.all([readAll(ours), readAll(theirs)])).toEqual(before);
}, 300_000);
