import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import type { CallerKind } from '../../src/platform/tokens/caller.ts';
import { listServers, makeGame, type TestGame } from '../support/game.ts';
import { find, makeControlledGame, seatOf } from '../support/game-server.ts';
import { fillPath, listOperations, type Operation } from '../support/operations.ts';
import { makeGuest } from '../support/people.ts';
import { openTestService, type TestService } from '../support/service.ts';

let muster: TestService;
/** The operations on a game or something that belongs to it. */
let operations: Operation[];
let own: TestGame;
/** The ids of another tenant's game, which has one of everything. */
let foreign: Record<string, string>;
/** Tokens of the own game and its players. */
let tokens: Partial<Record<CallerKind, string>>;

beforeAll(async () => {
  muster = await openTestService();
  const { api, administrator_token } = muster;
  operations = (await listOperations(api)).filter(({ names }) => names.includes('game_id'));
  own = await makeGame(api, administrator_token);
  tokens = {
    cloud: own.cloud_token,
    service: own.service_token,
    identity: (await makeGuest(api, own)).token,
  };

  const other = await makeControlledGame(muster);
  const { lobby_id } = await seatOf(find(muster, other));
  const [server] = await listServers(muster, other);
  const builds = `/games/${other.game_id}/environments/${other.namespace_id}/builds`;
  const image_file = { path: 'server.js', content_length: 1 };
  const { upload_id } = await api.ok('POST', `/cloud/games/${other.game_id}/builds`, {
    token: other.cloud_token,
    body: { display_name: 'Test build', kind: 'javascript', image_file, name: 'Test build' },
  });
  foreign = {
    game_id: other.game_id,
    namespace_id: other.namespace_id,
    environment_id: other.namespace_id,
    version_id: other.version_id,
    build_id: other.build_id,
    lobby_id,
    server_id: server.id,
    upload_id,
  };
  expect((await api.get(`${builds}/${foreign.build_id}`, other.cloud_token)).status).toBe(200);
});
afterAll(() => muster[Symbol.asyncDispose]());

/** Some operations need a body before they look up the ids in their path. */
const BODIES: Record<string, unknown> = {
  'PATCH /games/{game_id}/environments/{environment_id}/builds/{build_id}/tags': { tags: { a: 'b' } },
  'POST /cloud/games/{game_id}/matchmaker/lobbies/{lobby_id}/logs/export': { stream: 'std_out' },
  'POST /games/{game_id}/environments/{environment_id}/servers/{server_id}/logs/export': { stream: 'std_out' },
  'PUT /cloud/games/{game_id}/matchmaker/lobbies/{lobby_id}/closed': { is_closed: true },
};
const STREAM = '?stream=std_out&search_text=a';

interface Visible {
  status: number;
  body: string;
  headers: string;
}

/** These headers differ between any two requests. */
const VARYING_HEADERS = ['rvt-ray-id', 'date', 'ratelimit-remaining', 'ratelimit-reset'];

/** Returns everything else that a caller sees of an answer. */
async function callAs(operation: Operation, ids: Record<string, string>, token: string): Promise<Visible> {
  const body = BODIES[`${operation.method} ${operation.path}`];
  const path = fillPath(operation, ids) + (/\/(logs|log-lines|log-search)$/.test(operation.path) ? STREAM : '');
  const answer = await muster.api.call(operation.method, path, { token, body });
  const { ray_id: _ray_id, ...visible } = answer.body;
  const headers = [...answer.headers].filter(([name]) => !VARYING_HEADERS.includes(name));
  return { status: answer.status, body: JSON.stringify(visible), headers: JSON.stringify(headers) };
}

/**
 * Calls each operation with the ids of another tenant and with unknown ids; the answers must be equal. Returns them.
 */
async function compare(
  compared: Operation[],
  kind: CallerKind,
  idsOf: (operation: Operation) => { foreign: Record<string, string>; missing: Record<string, string> },
): Promise<{ name: string; status: number; code: string }[]> {
  const token = tokens[kind];
  if (token === undefined) throw new Error(`there is no ${kind} token`);
  const answers: { name: string; status: number; code: string }[] = [];
  for (const operation of compared) {
    const name = `${operation.method} ${operation.path}`;
    const ids = idsOf(operation);
    const answer = await callAs(operation, ids.foreign, token);
    expect({ name, ...answer }).toEqual({ name, ...(await callAs(operation, ids.missing, token)) });
    answers.push({ name, status: answer.status, code: JSON.parse(answer.body).code });
  }
  return answers;
}

describe.each(['cloud', 'service', 'identity'] as const)('a %s token of another game', (kind) => {
  test("gets the same answers for another tenant's game as for a missing one", async () => {
    const compared = operations.filter(({ kinds }) => kinds?.includes(kind));
    // Few operations accept a service token: it may not prepare builds or read logs.
    expect(compared.length).toBeGreaterThan(kind === 'service' ? 6 : 8);
    const answers = await compare(compared, kind, () => ({ foreign, missing: {} }));
    expect(answers.filter(({ status, code }) => status !== 404 || code !== 'GAME_NOT_FOUND')).toEqual([]);
  });
});

describe("tenants: another tenant's things look missing to a cloud token:", () => {
  test('namespaces, also as environments', async () => {
    const compared = operations.filter(
      ({ names }) => names.includes('namespace_id') || names.includes('environment_id'),
    );
    expect(compared.length).toBeGreaterThan(20);
    const { game_id } = own;
    const answers = await compare(compared, 'cloud', () => ({
      foreign: { ...foreign, game_id },
      missing: { game_id },
    }));
    expect(answers.filter(({ status, code }) => status !== 404 || code !== 'GAME_ENVIRONMENT_NOT_FOUND')).toEqual([]);
  });

  test('everything else that a path names', async () => {
    const ours = { game_id: own.game_id, namespace_id: own.namespace_id, environment_id: own.namespace_id };
    const compared = operations.filter(({ names }) => names.some((name) => !(name in ours) && name in foreign));
    expect(compared.length).toBeGreaterThan(8);
    const answers = await compare(compared, 'cloud', () => ({ foreign: { ...foreign, ...ours }, missing: ours }));
    // Removing a lobby or a player that does not exist succeeds.
    const removed = answers.filter(({ status }) => status === 200).map(({ name }) => name);
    expect(removed).toEqual([
      'DELETE /cloud/games/{game_id}/matchmaker/lobbies/{lobby_id}',
      'DELETE /cloud/games/{game_id}/matchmaker/lobbies/{lobby_id}/players/{player_id}',
    ]);
    const refused = answers.filter(({ name }) => !removed.includes(name));
    expect(refused.filter(({ status, code }) => status !== 404 || !code.endsWith('_NOT_FOUND'))).toEqual([]);
  });

  test('other environments of the same game, to a service token', async () => {
    const compared = operations.filter(({ kinds }) => kinds?.includes('service'));
    expect(compared.length).toBeGreaterThan(6);
    const { game_id, staging_id } = own;
    const answers = await compare(compared, 'service', () => ({
      foreign: { game_id, environment_id: staging_id },
      missing: { game_id },
    }));
    expect(answers.filter(({ status, code }) => status !== 404 || code !== 'GAME_NOT_FOUND')).toEqual([]);
  });
});

test("tenants: another tenant's game is unchanged after all these calls", async () => {
  const { game_id, environment_id, server_id, build_id } = foreign;
  const token = muster.administrator_token;
  const environment = `/games/${game_id}/environments/${environment_id}`;
  const { server } = await muster.api.ok('GET', `${environment}/servers/${server_id}`, { token });
  expect(server.destroyed_at).toBeUndefined();
  const { build } = await muster.api.ok('GET', `${environment}/builds/${build_id}`, { token });
  expect(build.tags).toEqual({});
});
