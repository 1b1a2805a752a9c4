import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { PART_BYTES } from '../../../src/features/uploads/rules.ts';
import { makeGame, type TestGame } from '../../support/game.ts';
import { findSeat, seeEachOther } from '../../support/lobbies/players.ts';
import { enterRoom, makeRoomGame } from '../../support/lobbies/room.ts';
import { openTcpProxy, type TcpProxy } from '../../support/network/tcp-proxy.ts';
import { sha256 } from '../../support/objects/digest.ts';
import { listBucket, openTestBucket, TEST_S3 } from '../../support/objects/s3.ts';
import { makeHome } from '../../support/program.ts';
import { serversOf, uploadShell } from '../../support/servers.ts';
import { openTestService, type TestService } from '../../support/service.ts';
import { showSite, uploadSite } from '../../support/site.ts';
import { completion, prepareScript, sendPart } from '../../support/uploads.ts';
import { waitFor } from '../../support/wait.ts';

describe.skipIf(TEST_S3 === undefined)('two machines on one database and one bucket', () => {
  let opened: AsyncDisposableStack;
  let bucket: Awaited<ReturnType<typeof openTestBucket>>;
  let proxy: TcpProxy;
  let here: TestService;
  let there: TestService;
  let game: TestGame;
  beforeAll(async () => {
    opened = new AsyncDisposableStack();
    bucket = await openTestBucket();
    const { hostname: host, port } = new URL(bucket.parsed.endpoint);
    proxy = opened.use(await openTcpProxy({ host, port: Number(port) }));
    const settings = { ...bucket.settings, S3_ENDPOINT: `http://127.0.0.1:${proxy.port}` };
    here = opened.use(await openTestService(settings));
    there = opened.use(await openTestService({ ...settings, MUSTER_DATACENTER: 'there' }, { database_of: here }));
    game = await makeGame(here.api, here.administrator_token);
  });
  afterAll(() => opened.disposeAsync());

  /** Returns which part of which file each object is, without the ids of the upload and the object. */
  const placesOf = async (upload_id: string) =>
    (await listBucket(bucket.parsed))
      .filter((name) => name.startsWith(`${upload_id}/`))
      .map((name) => /^[0-9a-f-]{36}\/(\d+\.\d+)\.[0-9a-f-]{36}$/.exec(name)?.[1]);

  test('serve a site that the other received, in full and in ranges across its parts', async () => {
    const large = new Uint8Array(PART_BYTES + 5).fill(97, 0, PART_BYTES).fill(98, PART_BYTES);
    const files = { 'index.html': '<!doctype html>', empty: '', 'small.txt': '0123456789' };
    const site_id = await uploadSite(here.api, game, files);
    const { game: seen } = await here.api.ok('GET', `/cloud/games/${game.game_id}`, { token: game.cloud_token });
    const get = (path: string, range?: string) =>
      fetch(`${there.config.public_url}/${path}`, {
        headers: { host: `${seen.name_id}.sites.localhost`, ...(range === undefined ? {} : { range }) },
      });
    await showSite(here.api, game, { site_id, routes: [] });
    for (const [path, content] of Object.entries(files)) {
      const answer = await waitFor(async () => {
        const response = await get(path);
        return response.ok ? response : undefined;
      }, 'the other machine to serve the site');
      expect(await answer.text()).toBe(content);
    }
    expect(await (await get('small.txt', 'bytes=3-5')).text()).toBe('345');

    const body = { display_name: 'Site', files: [{ path: 'large', content_length: large.length }] };
    const { game_id, cloud_token: token } = game;
    const site = await here.api.ok('POST', `/cloud/games/${game_id}/cdn/sites`, { token, body });
    for (const request of site.presigned_requests) {
      const { byte_offset: start, content_length } = request;
      expect(await sendPart(request, large.slice(start, start + content_length))).toBe('200 accepted');
      expect(await sendPart(request, large.slice(start, start + content_length))).toBe('200 accepted');
    }
    expect(await completion(there, site, token)).toBe('200 complete');
    expect(await placesOf(site.upload_id)).toEqual(['0.0', '0.1']);
    await showSite(here.api, game, { site_id: site.site_id, routes: [] });
    await waitFor(async () => (await get('large', 'bytes=0-0')).status === 206, 'the other site to be served');
    expect(Bun.hash(await (await get('large')).bytes())).toBe(Bun.hash(large));
    const seam = await get('large', `bytes=${PART_BYTES - 2}-${PART_BYTES + 1}`);
    expect([seam.status, await seam.text()]).toEqual([206, 'aabb']);
  }, 300_000);

  test('run a build that the other received', async () => {
    const build = await uploadShell(here.api, game, 'echo from the bucket');
    const servers = serversOf(here, game);
    const environment = `/games/${game.game_id}/environments/${game.namespace_id}`;
    const { datacenters } = await here.api.ok('GET', `${environment}/datacenters`, { token: game.cloud_token });
    const datacenter = datacenters.find(({ slug }: { slug: string }) => slug === 'there').id;
    const { body } = await servers.create({ ...(await servers.bodyOf(build)), datacenter });
    await waitFor(async () => (await servers.linesOf(body.server.id)).length > 0, 'a line of the server');
    expect(await servers.linesOf(body.server.id)).toEqual(['from the bucket']);
    expect(readdirSync(join(there.config.data_directory, 'builds'))).toContain(build);
    for (const { config } of [here, there]) expect(readdirSync(join(config.data_directory, 'objects'))).toEqual([]);
  });

  test('read a build of the other by a link, and unpack it again after its unpacked files were removed', async () => {
    const build = await uploadShell(here.api, game, 'echo once more');
    const path = `/games/${game.game_id}/environments/${game.namespace_id}/builds/${build}/file`;
    const { url, sha256: digest } = await here.api.ok('GET', path, { token: game.cloud_token });
    const linked = new URL(url);
    linked.port = new URL(there.config.public_url).port;
    const file = await (await fetch(linked)).bytes();
    expect(sha256(file)).toBe(digest);
    rmSync(join(here.config.data_directory, 'builds', build), { recursive: true });
    const servers = serversOf(here, game);
    const { body } = await servers.create(await servers.bodyOf(build));
    await waitFor(async () => (await servers.linesOf(body.server.id)).length > 0, 'a line of the server');
    expect(await servers.linesOf(body.server.id)).toEqual(['once more']);
  });

  test('do not share files with a third that has no bucket, which says so at its start', async () => {
    await using third = await openTestService({}, { database_of: here });
    const [{ event, location_of_database } = {}] = third.events.filter((one) => one.event === 'storage_differs');
    expect({ event, location_of_database }).toMatchObject({
      event: 'storage_differs',
      location_of_database: expect.stringContaining(bucket.parsed.bucket),
    });
    const { body } = await third.api.get('/health/ready');
    expect(body.warnings).toContainEqual(expect.objectContaining({ code: 'STORAGE_DIFFERS' }));
  });

  test('keep nothing of a file that was truncated or has another length', async () => {
    const { requests, upload_id } = await prepareScript(here, game, { content_length: 5 });
    const [request] = requests;
    if (!request) throw new Error('a file has a request');
    expect(await sendPart(request, '1234')).toBe('400 UPLOAD_LENGTH_MISMATCH');
    expect(await sendPart(request, '123456')).toBe('400 UPLOAD_LENGTH_MISMATCH');
    expect(await completion(here, { upload_id }, game.cloud_token)).toBe('400 UPLOAD_INCOMPLETE');
    expect(await placesOf(upload_id)).toEqual([]);
  });

  test('refuse a single part above the maximum of S3 before it is sent; several parts are accepted', async () => {
    const { game_id, cloud_token: token } = game;
    const image_file = { path: 'server.tar', content_length: 5 * 1024 ** 3 + 1 };
    const body = { display_name: 'Build', kind: 'archive', command: ['./server'], image_file };
    const path = `/cloud/games/${game_id}/builds`;
    const refused = await here.api.call('POST', path, { token, body });
    expect([refused.status, refused.body.message]).toEqual([
      400,
      'The upload is invalid: a file of more than 5368709120 bytes must be sent in parts (multipart_upload).',
    ]);
    expect(await here.api.ok('POST', path, { token, body: { ...body, multipart_upload: true } })).toHaveProperty(
      'upload_id',
    );
  });

  test('report an unreachable bucket, and work again once it is back', async () => {
    const { requests, upload_id } = await prepareScript(here, game);
    const [request] = requests;
    if (!request) throw new Error('a file has a request');
    await proxy.cut();
    expect(await sendPart(request, 'x')).toBe('503 OBJECTS_UNAVAILABLE');
    await proxy.heal();
    expect(await sendPart(request, 'x')).toBe('200 accepted');
    await proxy.cut();
    expect(await completion(here, { upload_id }, game.cloud_token)).toBe('503 OBJECTS_UNAVAILABLE');
    await proxy.heal();
    expect(await completion(there, { upload_id }, game.cloud_token)).toBe('200 complete');
    const logged = JSON.stringify(here.events.filter(({ event }) => event === 'request_failed'));
    for (const secret of ['X-Amz', bucket.parsed.secret_access_key]) expect(logged).not.toContain(secret);
  });

  test('remove an upload from the bucket, whichever machine received it', async () => {
    const abandoned = await prepareScript(here, game);
    for (const request of abandoned.requests) await sendPart(request, 'x');
    expect(await placesOf(abandoned.upload_id)).toEqual(['0.0']);
    here.clock.advance(24 * 3_600_000 + 1_000);
    await using _third = await openTestService(bucket.settings, { database_of: here });
    await waitFor(async () => (await placesOf(abandoned.upload_id)).length === 0, 'the bytes to be removed');
  });
});

test.skipIf(TEST_S3 === undefined)(
  's3: with a bucket, two players meet on a build that a second start finds there',
  async () => {
    const { settings, parsed } = await openTestBucket();
    await using home = await makeHome({ ...settings, MUSTER_DEMO: 'off' }, { has_prepared_database: true });
    const first = await home.start();
    const game = await makeRoomGame(first);
    expect(await first.stop('SIGINT')).toBe(0);
    const names = await listBucket(parsed);
    expect(names.filter((name) => !name.startsWith('storage-marks/'))).toHaveLength(1);
    expect(names).toHaveLength(2);
    expect(readdirSync(join(home.data_directory, 'objects'))).toEqual([]);
    rmSync(join(home.data_directory, 'builds'), { recursive: true });

    const second = await home.start();
    const one = await enterRoom(await findSeat(second, game));
    const other = await enterRoom(await findSeat(second, game));
    await seeEachOther(one, other);
    // Game servers know nothing of the bucket.
    const others = home.processes().filter((pid) => pid !== second.pid);
    expect(others.length).toBeGreaterThan(0);
    for (const pid of others) {
      const environment = await Bun.file(`/proc/${pid}/environ`).text();
      expect(environment).not.toContain(parsed.secret_access_key);
    }
    expect(second.output()).not.toContain(parsed.secret_access_key);
    expect(await second.stop('SIGINT')).toBe(0);

    const wrong = await home.run({ settings: { S3_BUCKET: 'no-such-bucket' } });
    expect(wrong.exit_code).toBe(1);
    expect(wrong.output).toContain(`The bucket "no-such-bucket" at ${parsed.endpoint} cannot be used (NoSuchBucket): `);
  },
  300_000,
);
