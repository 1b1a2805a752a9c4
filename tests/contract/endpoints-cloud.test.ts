import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { buildsOf } from '../support/builds.ts';
import { makeGame } from '../support/game.ts';
import { openTestService, type TestService } from '../support/service.ts';
import { makeTenant } from '../support/tenant.ts';
import { type EndpointRow, testRows, type World } from './endpoint-rows.ts';
import { EMPTY, listOf, mapOf, record } from './exact-shapes.ts';
import * as shapes from './specification.ts';
import { PICTURE, sendPicture } from './wire-contract-cloud.ts';

const GAME = '/cloud/games/{game_id}';
const NAMESPACE = `${GAME}/namespaces/{namespace_id}`;
/** The callers that may read and write a game in the reference API. */
const DEVELOPERS = ['cloud', 'identity'] as const;
const LIMITS = record({ lobby_count_max: 'u32', max_players: 'u32' });
const HASH = await Bun.password.hash('secret', { algorithm: 'bcrypt', cost: 4 });

const ROWS: EndpointRow[] = [
  { name: 'bootstrap', method: 'GET', path: '/cloud/bootstrap', allow: [], response_shape: shapes.BOOTSTRAP },
  {
    name: 'games.getGameById',
    method: 'GET',
    path: GAME,
    allow: DEVELOPERS,
    query: { 'watch_index?': () => 'of nothing that was seen' },
    response_shape: record({ game: shapes.GAME, watch: shapes.WATCH }),
  },
  {
    name: 'games.getGames',
    method: 'GET',
    path: '/cloud/games',
    allow: ['identity', 'cloud'],
    query: { 'watch_index?': () => 'of nothing that was seen' },
    response_shape: record({
      games: listOf(shapes.GAME_SUMMARY),
      groups: listOf(shapes.GROUP_SUMMARY),
      watch: shapes.WATCH,
    }),
  },
  {
    name: 'createGameNamespaceTokenDevelopment',
    method: 'POST',
    path: `${NAMESPACE}/tokens/development`,
    allow: DEVELOPERS,
    request_shape: record({ hostname: 'string', 'ports?': mapOf(shapes.PORT_CONFIGURATION) }),
    sample: () => ({ hostname: 'localhost', ports: { game: { protocol: 'udp', port_range: { min: 80, max: 90 } } } }),
    response_shape: record({ token: 'string' }),
  },
  {
    name: 'createGameNamespace',
    method: 'POST',
    path: `${GAME}/namespaces`,
    allow: DEVELOPERS,
    request_shape: record({ display_name: 'string', name_id: 'string', version_id: 'string' }),
    sample: ({ tenant }) => {
      const name_id = `beta-${crypto.randomUUID().slice(0, 8)}`;
      return { display_name: name_id, name_id, version_id: tenant.ids.version_id };
    },
    response_shape: record({ namespace_id: 'string' }),
  },
  {
    name: 'validateGameNamespaceMatchmakerConfig',
    method: 'POST',
    path: `${NAMESPACE}/mm-config/validate`,
    allow: DEVELOPERS,
    request_shape: LIMITS,
    sample: () => ({ lobby_count_max: 0, max_players: 0 }),
    response_shape: record({ errors: listOf(shapes.VALIDATION_ERROR) }),
  },
  {
    name: 'updateNamespaceCdnAuthUser',
    method: 'POST',
    path: `${NAMESPACE}/auth-user`,
    allow: DEVELOPERS,
    request_shape: record({ user: 'string', password: 'string' }),
    sample: () => ({ user: 'ann', password: HASH }),
    response_shape: EMPTY,
  },
  {
    name: 'exportMatchmakerLobbyHistory',
    method: 'POST',
    path: `${GAME}/matchmaker/lobbies/export-history`,
    allow: DEVELOPERS,
    request_shape: record({ query_start: 'u64', query_end: 'u64' }),
    sample: () => ({ query_start: 0, query_end: Number.MAX_SAFE_INTEGER }),
    response_shape: record({ url: 'string' }),
  },
  {
    name: 'exportLobbyLogs',
    method: 'POST',
    path: `${GAME}/matchmaker/lobbies/{lobby_id}/logs/export`,
    allow: DEVELOPERS,
    request_shape: record({ stream: 'string' }),
    sample: () => ({ stream: 'std_out' }),
    response_shape: record({ url: 'string' }),
  },
  {
    name: 'listGameCdnSites',
    method: 'GET',
    path: `${GAME}/cdn/sites`,
    allow: DEVELOPERS,
    response_shape: record({ sites: listOf(shapes.CDN_SITE_SUMMARY), watch: shapes.WATCH }),
  },
  {
    name: 'createGameCdnSite',
    method: 'POST',
    path: `${GAME}/cdn/sites`,
    allow: DEVELOPERS,
    request_shape: record({
      display_name: 'string',
      files: listOf(record({ path: 'string', content_length: 'u64', 'content_type?': 'string' })),
    }),
    sample: () => ({
      display_name: 'Site',
      files: [{ path: 'index.html', content_length: 5, content_type: 'text/html' }],
    }),
    response_shape: record({
      site_id: 'string',
      upload_id: 'string',
      presigned_requests: listOf(shapes.PRESIGNED_REQUEST),
    }),
  },
  {
    name: 'listGameBuilds',
    method: 'GET',
    path: `${GAME}/builds`,
    allow: DEVELOPERS,
    response_shape: record({ builds: listOf(shapes.BUILD_SUMMARY), watch: shapes.WATCH }),
  },
  {
    name: 'prepareCustomAvatarUpload',
    method: 'POST',
    path: `${GAME}/prepare`,
    allow: DEVELOPERS,
    request_shape: record({ path: 'string', content_length: 'u64', 'mime?': 'string' }),
    sample: () => ({ path: 'me.png', content_length: 100, mime: 'image/png' }),
    response_shape: record({ upload_id: 'string', presigned_request: shapes.PRESIGNED_REQUEST }),
  },
  {
    name: 'groups.billing.getUsage',
    method: 'GET',
    path: '/cloud/groups/{group_id}/billing/usage',
    allow: ['identity'],
    query: { 'query_start_ts?': () => '2026-01-01T00:00:00Z', 'query_end_ts?': () => String(Date.now() + 60_000) },
    response_shape: shapes.BILLING_USAGE,
  },
  {
    name: 'devices.links.complete',
    method: 'POST',
    path: '/cloud/devices/links/complete',
    allow: ['identity'],
    request_shape: record({ device_link_token: 'string', game_id: 'string' }),
    sample: async ({ api, tenant }) => {
      const { device_link_token } = await api.ok('POST', '/cloud/devices/links');
      return { device_link_token, game_id: tenant.ids.game_id };
    },
    response_shape: EMPTY,
  },
];

let opened: TestService;
let world: World;
beforeAll(async () => {
  opened = await openTestService();
  world = { api: opened.api, tenant: await makeTenant(opened) };
});
afterAll(() => opened[Symbol.asyncDispose]());

const path = (end = '') => `/cloud/games/${world.tenant.game.game_id}${end}`;
const ok = (method: string, at: string, body?: object, token = world.tenant.tokens.cloud) =>
  opened.api.ok(method, at, { token, body });

describe('cloud endpoints', () => {
  testRows(ROWS, () => world);
});

test('games.getGames lists games whose team includes the current identity as a group member, and no others', async () => {
  const foreign = await makeGame(opened.api, opened.administrator_token);
  const { games, groups } = await ok('GET', '/cloud/games', undefined, world.tenant.member.token);
  expect(games.map(({ game_id }: { game_id: string }) => game_id)).toEqual([world.tenant.game.game_id]);
  expect(groups.map(({ group_id }: { group_id: string }) => group_id)).toEqual([world.tenant.game.group_id]);
  expect(JSON.stringify(games)).not.toContain(foreign.game_id);
});

test('a development token has a description prefix, and protobufs instead of JSON', async () => {
  const namespace = path(`/namespaces/${world.tenant.game.namespace_id}/tokens/development`);
  const { token } = await ok('POST', namespace, { hostname: 'some.laptop.example' });
  const [prefix, header, claims = '', signature, ...rest] = token.split('.');
  expect([prefix, rest]).toEqual(['dev_prod', []]);
  const bytes = Buffer.from(claims, 'base64url');
  expect(() => JSON.parse(bytes.toString())).toThrow();
  // A protobuf message contains its texts unencoded.
  expect(bytes.toString('latin1')).toContain('some.laptop.example');
  for (const part of [header, claims, signature]) expect(part).toMatch(/^[\w-]+$/);
});

test('createGameNamespace binds the new namespace to the version', async () => {
  const { version_id } = world.tenant.ids;
  const body = { display_name: 'Canary', name_id: 'canary', version_id };
  const { namespace_id } = await ok('POST', path('/namespaces'), body);
  const { game } = await ok('GET', path());
  expect(game.namespaces).toContainEqual({ namespace_id, ...body, create_ts: expect.any(String) });
});

test.each(['export-history', '{lobby_id}/logs/export'])('%s answers the URL of a CSV file', async (end) => {
  const body = end === 'export-history' ? { query_start: 0, query_end: Date.now() + 1_000 } : { stream: 'std_out' };
  const { lobby_id = '' } = world.tenant.ids;
  const { url } = await ok('POST', path(`/matchmaker/lobbies/${end.replace('{lobby_id}', lobby_id)}`), body);
  const response = await fetch(url);
  expect([response.status, response.headers.get('content-type')]).toEqual([200, 'text/csv; charset=utf-8']);
  const [columns = '', line = ''] = (await response.text()).split('\r\n');
  expect(columns).toMatch(/^\w+(,\w+)+$/);
  expect(line).toContain(end === 'export-history' ? lobby_id : String(world.tenant.tokens.lobby));
});

test('listGameBuilds and listGameCdnSites list all of the game, also unfinished ones', async () => {
  const build_id = await buildsOf(opened, world.tenant.game).make();
  const { builds } = await ok('GET', path('/builds'));
  expect(builds).toContainEqual(expect.objectContaining({ build_id, complete: false }));
  expect(builds).toContainEqual(expect.objectContaining({ build_id: world.tenant.ids.build_id, complete: true }));
  const { sites } = await ok('GET', path('/cdn/sites'));
  const { site_id, upload_id } = world.tenant.ids;
  expect(sites).toContainEqual(expect.objectContaining({ site_id, complete: true }));
  expect(sites).toContainEqual(expect.objectContaining({ upload_id, complete: false }));
});

test('an avatar is completed with a separate operation', async () => {
  const { upload_id, presigned_request } = await ok('POST', path('/prepare'), PICTURE);
  await sendPicture({ presigned_request });
  const isComplete = async () => {
    const { custom_avatars } = await ok('GET', path('/avatars'));
    return custom_avatars.find((avatar: { upload_id: string }) => avatar.upload_id === upload_id).complete;
  };
  expect(await isComplete()).toBe(false);
  await ok('POST', path(`/avatar-upload/${upload_id}/complete`), {});
  expect(await isComplete()).toBe(true);
});

test('completing a device link gives the device a token of the game', async () => {
  const { device_link_token } = await opened.api.ok('POST', '/cloud/devices/links');
  const body = { device_link_token, game_id: world.tenant.game.game_id };
  expect(await ok('POST', '/cloud/devices/links/complete', body, world.tenant.member.token)).toEqual({});
  const { cloud_token } = await opened.api.ok('GET', `/cloud/devices/links?device_link_token=${device_link_token}`);
  const { game } = await ok('GET', path(), undefined, cloud_token);
  expect(game.game_id).toBe(world.tenant.game.game_id);
});
