import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { buildsOf } from '../support/builds.ts';
import { listServers } from '../support/game.ts';
import { serversOf } from '../support/servers.ts';
import { openTestService, type TestService } from '../support/service.ts';
import { makeTenant } from '../support/tenant.ts';
import { type EndpointRow, testRows, type World } from './endpoint-rows.ts';
import { listOf, record } from './exact-shapes.ts';
import { BUILD, DATACENTER, SERVER, WATCH } from './specification.ts';

const ENVIRONMENT = '/games/{game_id}/environments/{environment_id}';
/** The kinds of tokens by which developers manage servers and read builds. */
const DEVELOPERS = ['cloud', 'identity', 'service'] as const;

const ROWS: EndpointRow[] = [
  {
    name: 'servers list',
    method: 'GET',
    path: `${ENVIRONMENT}/servers`,
    allow: DEVELOPERS,
    query: {
      'tags_json?': () => '{"mode":"a"}',
      'include_destroyed?': () => 'true',
      'cursor?': ({ tenant }) => tenant.ids.server_id ?? '',
    },
    response_shape: record({ servers: listOf(SERVER), watch: WATCH }),
  },
  {
    name: 'servers get',
    method: 'GET',
    path: `${ENVIRONMENT}/servers/{server_id}`,
    allow: DEVELOPERS,
    response_shape: record({ server: SERVER, watch: WATCH }),
  },
  {
    name: 'logs get',
    method: 'GET',
    path: `${ENVIRONMENT}/servers/{server_id}/logs`,
    allow: ['cloud', 'identity'],
    query: { stream: () => 'std_out', 'watch_index?': () => 'of nothing that was seen' },
    response_shape: record({ lines: listOf('string'), timestamps: listOf('string'), watch: WATCH }),
  },
  {
    name: 'builds get',
    method: 'GET',
    path: `${ENVIRONMENT}/builds/{build_id}`,
    allow: DEVELOPERS,
    query: { 'tags_json?': () => '{}' },
    response_shape: record({ build: BUILD, watch: WATCH }),
  },
  {
    name: 'builds list',
    method: 'GET',
    path: `${ENVIRONMENT}/builds`,
    allow: DEVELOPERS,
    query: { 'tags_json?': () => '{}' },
    response_shape: record({ builds: listOf(BUILD), watch: WATCH }),
  },
  {
    name: 'datacenters list',
    method: 'GET',
    path: `${ENVIRONMENT}/datacenters`,
    allow: DEVELOPERS,
    response_shape: record({ datacenters: listOf(DATACENTER) }),
  },
];

let opened: TestService;
let world: World;
beforeAll(async () => {
  opened = await openTestService();
  world = { api: opened.api, tenant: await makeTenant(opened) };
});
afterAll(() => opened[Symbol.asyncDispose]());

describe('environment-scoped endpoints', () => {
  testRows(ROWS, () => world);
});

test('servers list lists all servers of the game, filterable by tags', async () => {
  const servers = serversOf(opened, world.tenant.game);
  const [red, blue] = [await servers.run('sleep 60', { tags: { team: 'red' } }), await servers.run('sleep 60')];
  const idsOf = (list: { id: string }[]) => list.map(({ id }) => id);
  const all = idsOf(await listServers(opened, world.tenant.game));
  expect(all).toEqual([blue, red, world.tenant.ids.server_id ?? '']);
  const { cloud: token } = world.tenant.tokens;
  const list = async (query: Record<string, string>) =>
    idsOf((await opened.api.ok('GET', `${servers.path}?${new URLSearchParams(query)}`, { token })).servers);
  expect(await list({ tags_json: '{"team":"red"}' })).toEqual([red]);
  expect(await list({ cursor: red })).toEqual([world.tenant.ids.server_id ?? '']);
  await servers.destroy(red);
  await servers.waitForEnd(red);
  expect(await list({ tags_json: '{"team":"red"}' })).toEqual([]);
  expect(await list({ tags_json: '{"team":"red"}', include_destroyed: 'true' })).toEqual([red]);
});

test('logs get has its lines and timestamps sorted old to new, one timestamp for each line', async () => {
  const servers = serversOf(opened, world.tenant.game);
  const id = await servers.run('for line in 1 2 3; do echo $line; sleep 0.02; done; echo oops >&2; sleep 60');
  expect(await servers.waitForLines(id, 3)).toEqual(['1', '2', '3']);
  const { lines, timestamps } = (await servers.log(id)).body;
  expect(timestamps).toHaveLength(lines.length);
  const moments = timestamps.map((timestamp: string) => Date.parse(timestamp));
  expect(moments).toEqual([...moments].sort((one, other) => one - other));
  expect(await servers.waitForLines(id, 1, 'std_err')).toEqual(['oops']);
});

test('builds list lists the builds of the environment that have all of the tags', async () => {
  const builds = buildsOf(opened, world.tenant.game);
  const build_id = await builds.make();
  await builds.setTags(build_id, { tags: { channel: 'beta', mood: 'calm' } });
  expect(await builds.idsWith({ channel: 'beta' })).toEqual([build_id]);
  expect(await builds.idsWith({ channel: 'beta', mood: 'wild' })).toEqual([]);
  expect(await builds.idsWith({})).toContain(world.tenant.ids.build_id ?? '');
  expect((await builds.get(build_id)).body.build.tags).toEqual({ channel: 'beta', mood: 'calm' });
});
