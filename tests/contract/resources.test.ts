import { afterAll, beforeAll, expect, test } from 'bun:test';
import { buildsOf } from '../support/builds.ts';
import { serversOf } from '../support/servers.ts';
import { openTestService, type TestService } from '../support/service.ts';
import { makeTenant, type Tenant } from '../support/tenant.ts';
import { prepareScript } from '../support/uploads.ts';
import { waitFor } from '../support/wait.ts';
import { expectShape, listOf } from './exact-shapes.ts';
import * as shapes from './specification.ts';
import { PICTURE, sendPicture } from './wire-contract-cloud.ts';

let opened: TestService;
let tenant: Tenant;
beforeAll(async () => {
  opened = await openTestService();
  tenant = await makeTenant(opened);
});
afterAll(() => opened[Symbol.asyncDispose]());

const path = (end = '') => `/cloud/games/${tenant.game.game_id}${end}`;
const get = (at: string, token = tenant.tokens.cloud) => opened.api.ok('GET', at, { token });
const post = (at: string, body: object = {}, token = tenant.tokens.cloud) => opened.api.ok('POST', at, { token, body });

test('Server', async () => {
  const servers = serversOf(opened, tenant.game);
  const server_id = await servers.run('sleep 60', {
    tags: { mode: 'duel' },
    runtime: { arguments: ['--fast'], environment: { MOOD: 'calm' } },
    network: {
      ports: {
        game: { protocol: 'http', internal_port: 7_777 },
        raw: { protocol: 'tcp', routing: { host: {} } },
      },
    },
    resources: { cpu: 125, memory: 256 },
    lifecycle: { kill_timeout: 250 },
  });
  const made = await servers.get(server_id);
  expectShape(made, shapes.SERVER);
  expect(made).toMatchObject({
    id: server_id,
    environment: tenant.game.namespace_id,
    tags: { mode: 'duel' },
    lifecycle: { kill_timeout: 250 },
    network: {
      mode: 'bridge',
      ports: {
        game: { protocol: 'http', routing: { game_guard: {} } },
        raw: { protocol: 'tcp', routing: { host: {} } },
      },
    },
    resources: { cpu: 125, memory: 256 },
    runtime: { arguments: ['--fast'], environment: { MOOD: 'calm' } },
  });
  expect(Object.keys(made.network.ports).sort()).toEqual(['game', 'raw']);
  const started = await servers.waitForStart(server_id);
  expectShape(started, shapes.SERVER);
  expect(started.network.ports.raw).toMatchObject({
    public_hostname: expect.any(String),
    public_port: expect.any(Number),
  });
  await servers.destroy(server_id);
  const destroyed = await servers.waitForEnd(server_id);
  expectShape(destroyed, shapes.SERVER);
  expect(destroyed).toContainKeys(['started_at', 'destroyed_at']);
});

test('Build', async () => {
  const builds = buildsOf(opened, tenant.game);
  const build_id = await builds.make({
    name: 'Mine',
    kind: 'javascript',
    image_file: { path: 'server.js', content_length: 77 },
  });
  const { build } = (await builds.get(build_id)).body;
  expectShape(build, shapes.BUILD);
  expect(build).toMatchObject({ id: build_id, name: 'Mine', content_length: 77, tags: {} });
});

test('Build summary', async () => {
  const { build_id, upload_id } = await prepareScript(opened, tenant.game, { content_length: 78 });
  const { builds } = await get(path('/builds'));
  expectShape(builds, listOf(shapes.BUILD_SUMMARY));
  const summary = { build_id, upload_id, display_name: 'Test build', content_length: 78, complete: false, tags: {} };
  expect(builds[0]).toMatchObject(summary);
});

test('Game', async () => {
  const { game } = await get(path());
  expectShape(game, shapes.GAME);
  expect(game).toMatchObject({
    game_id: tenant.game.game_id,
    name_id: expect.stringMatching(/^[a-z0-9-]+$/),
    developer_group_id: tenant.game.group_id,
  });
  expect(game).not.toContainAnyKeys(['logo_url', 'banner_url']);
  expect([game.available_regions.length, game.namespaces.length, game.versions.length]).toEqual([1, 2, 2]);
  expect(game.available_regions[0].region_name_id).toBe('local');
  for (const picture of ['logo', 'banner']) {
    const prepared = await post(path(`/${picture}-upload/prepare`), PICTURE);
    await sendPicture(prepared);
    await post(path(`/${picture}-upload/${prepared.upload_id}/complete`));
  }
  const pictured = (await get(path())).game;
  expectShape(pictured, shapes.GAME);
  for (const url of [pictured.logo_url, pictured.banner_url]) expect((await fetch(url)).status).toBe(200);
});

test('Game summary', async () => {
  const { games } = await get('/cloud/games', tenant.member.token);
  expect(games).toHaveLength(1);
  expectShape(games, listOf(shapes.GAME_SUMMARY));
  expect(games[0]).toMatchObject({ game_id: tenant.game.game_id, developer: { group_id: tenant.game.group_id } });
});

test('Group summary', async () => {
  const { groups } = await get('/cloud/games', tenant.member.token);
  expectShape(groups, listOf(shapes.GROUP_SUMMARY));
  expect(groups).toMatchObject([
    { group_id: tenant.game.group_id, is_current_identity_member: true, member_count: 2, publicity: 'open' },
  ]);
  // A bio has one to five lines.
  const group = `/group/groups/${tenant.game.group_id}`;
  const owner = opened.administrator_token;
  const bioOf = async () => (await get('/cloud/games', tenant.member.token)).groups[0].bio;
  await post(`${group}/profile`, { bio: 'We make games.\nIn two lines.' }, owner);
  expect(await bioOf()).toBe('We make games.\nIn two lines.');
  const { errors } = await post('/group/groups/profile/validate', { bio: '1\n2\n3\n4\n5\n6' }, owner);
  expect(errors).not.toEqual([]);
  const prepared = await post('/group/groups/avatar-upload/prepare', PICTURE, owner);
  await sendPicture(prepared);
  await post(`${group}/avatar-upload/${prepared.upload_id}/complete`, {}, owner);
  const after = await get('/cloud/games', tenant.member.token);
  expectShape(after.groups, listOf(shapes.GROUP_SUMMARY));
  expectShape(after.games, listOf(shapes.GAME_SUMMARY));
  expect((await fetch(after.groups[0].avatar_url)).status).toBe(200);
});

test('Watch object: passing its index back blocks until the next response', async () => {
  const { watch } = await get(path());
  expectShape(watch, shapes.WATCH);
  let is_answered = false;
  const next = get(path(`?watch_index=${encodeURIComponent(watch.index)}`)).finally(() => {
    is_answered = true;
  });
  await get('/cloud/games');
  expect(is_answered).toBe(false);
  await post(path('/versions'), { display_name: 'Next', config: {} });
  const { game, watch: later } = await next;
  expect(game.versions).toHaveLength(3);
  expect(later.index).not.toBe(watch.index);
});

test('CDN site summary', async () => {
  const { sites } = await get(path('/cdn/sites'));
  expectShape(sites, listOf(shapes.CDN_SITE_SUMMARY));
  const { upload_id, site_id } = tenant.ids;
  expect(sites).toMatchObject([
    { upload_id, display_name: 'Unfinished', content_length: 1, complete: false },
    { site_id, display_name: 'Test site', content_length: 5, complete: true },
  ]);
});

test('Presigned request: the file is uploaded by PUT, in parts if that was requested', async () => {
  const { requests } = await prepareScript(opened, tenant.game, { path: 'a/server.js', content_length: 3 });
  expectShape(requests, listOf(shapes.PRESIGNED_REQUEST));
  expect(requests).toMatchObject([{ path: 'a/server.js', byte_offset: 0, content_length: 3 }]);
  expect((await fetch(requests[0]?.url ?? '', { method: 'PUT', body: 'a()' })).status).toBe(200);
  const content_length = 250 * 2 ** 20;
  const builds = buildsOf(opened, tenant.game);
  const image_file = { path: 'server.tar', content_length };
  const big = { name: 'Big', kind: 'archive', command: ['./server'], image_file, multipart_upload: true };
  const { image_presigned_requests: parts } = (await builds.prepare(big)).body;
  expectShape(parts, listOf(shapes.PRESIGNED_REQUEST));
  let end = 0;
  for (const part of parts) {
    expect([part.path, part.byte_offset]).toEqual(['server.tar', end]);
    end += part.content_length;
  }
  expect([end, parts.length > 1]).toEqual([content_length, true]);
});

test('Datacenter', async () => {
  const { game_id, namespace_id } = tenant.game;
  const { datacenters } = await get(`/games/${game_id}/environments/${namespace_id}/datacenters`);
  expectShape(datacenters, listOf(shapes.DATACENTER));
  expect(datacenters).toMatchObject([{ slug: 'local' }]);
});

test('Bootstrap response', async () => {
  const bootstrap = await get('/cloud/bootstrap', '');
  expectShape(bootstrap, shapes.BOOTSTRAP);
  // The URL that is built from the origin resolves: the page of a device link.
  const { device_link_url } = await opened.api.ok('POST', '/cloud/devices/links');
  expect(device_link_url).toStartWith(`${bootstrap.origins.hub}/`);
  expect((await fetch(device_link_url)).status).toBe(200);
});

test('Billing usage response: processor time in milliseconds, by game and region', async () => {
  await serversOf(opened, tenant.game).run('while :; do :; done');
  const read = async () => {
    const usage = await get(`/cloud/groups/${tenant.game.group_id}/billing/usage`, tenant.member.token);
    expectShape(usage, shapes.BILLING_USAGE);
    return usage.games[0].regions[0]?.uptime >= 100 && usage;
  };
  const { games } = await waitFor(read, 'a tenth of a second of usage');
  const { game } = await get(path());
  expect(games).toMatchObject([
    { game_id: tenant.game.game_id, regions: [{ region_id: game.available_regions[0].region_id }] },
  ]);
});

test('Validation error', async () => {
  const { errors } = await post('/cloud/games/validate', { display_name: '' }, opened.administrator_token);
  expect(errors.length).toBeGreaterThan(0);
  expectShape(errors, listOf(shapes.VALIDATION_ERROR));
  expect(errors[0].path.length).toBeGreaterThan(0);
});
