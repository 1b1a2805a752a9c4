import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, utimesSync } from 'node:fs';
import { join } from 'node:path';
import { type Builds, createBuilds } from '../../../src/features/builds/builds.ts';
import { openBuilds } from '../../../src/features/builds/feature.ts';
import { selectBuildsOn } from '../../../src/features/servers/store.ts';
import { createUploads, type Uploads } from '../../../src/features/uploads/uploads.ts';
import { type Database, openDatabase } from '../../../src/platform/database/database.ts';
import type { ServiceEvent } from '../../../src/platform/events.ts';
import { createTransfers } from '../../../src/platform/http/transfers.ts';
import { createDiskObjects } from '../../../src/platform/objects/disk.ts';
import { createSignedLinks } from '../../../src/platform/objects/links.ts';
import { createPresigner } from '../../../src/platform/objects/presign.ts';
import { type DiskSpace, storageFull, UNLIMITED_SPACE } from '../../../src/platform/system/disk-space.ts';
import { directoryOfBuild } from '../../support/builds.ts';
import { makeGame, type TestGame, uploadBuild, uploadScript } from '../../support/game.ts';
import { serversOf, uploadShell, waitForEndEvent } from '../../support/servers.ts';
import { makeDataDirectory } from '../../support/service.ts';
import { shareService } from '../../support/suite.ts';
import { packTar } from '../../support/tar.ts';
import { waitFor } from '../../support/wait.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const KEY = { kty: 'oct', k: Buffer.alloc(32, 'k').toString('base64url') };
const readNoBuilds = async () => new Map<string, Date>();

const muster = shareService();
let database: Database;
let game: TestGame;
let uploads: Uploads;
beforeAll(async () => {
  database = openDatabase(muster.database_address, 4);
  game = await makeGame(muster.api, muster.administrator_token);
  const { clock, config } = muster;
  uploads = createUploads({
    database,
    clock,
    events: { emit() {} },
    objects: createDiskObjects(join(config.data_directory, 'objects')),
    presigner: createPresigner(KEY, clock, config.public_url),
  });
});
afterAll(() => database[Symbol.asyncDispose]());

/** Another machine, with a directory of its own and nothing in it, or with that of a machine. */
async function openMachine(space: DiskSpace = UNLIMITED_SPACE, of_machine?: string) {
  const directory = of_machine ?? (await makeDataDirectory());
  const { clock } = muster;
  const builds = createBuilds({ database, clock, uploads, directory, space, available: { kinds: [] } });
  const unpack = async (build_id: string) => (await builds.ensureUnpacked(game, build_id)).directory;
  const remove = async (kept_ms: number, buildsInUse = readNoBuilds) => {
    const before = new Date(clock.now().getTime() - kept_ms);
    return (await builds.removeUnused({ before, buildsInUse })).map(({ build_id }) => build_id);
  };
  return { directory, builds, unpack, remove };
}

const script = () => uploadScript(muster.api, game, `console.log('${crypto.randomUUID()}')`);

describe('unused builds: a build that no server uses', () => {
  test('is removed when its last use is long ago, and unpacked again when it is needed', async () => {
    const { directory, unpack, remove } = await openMachine();
    const [old, young] = [await script(), await script()];
    const place = await unpack(old);
    muster.clock.advance(2 * HOUR_MS);
    await unpack(young);
    muster.clock.advance(2 * HOUR_MS);
    expect(await remove(5 * HOUR_MS)).toEqual([]);
    expect(await remove(3 * HOUR_MS)).toEqual([old]);
    expect(existsSync(place)).toBe(false);
    expect(readdirSync(directory).filter((name) => name.includes('.'))).toEqual([]);
    expect(await remove(3 * HOUR_MS)).toEqual([]);
    expect(await unpack(old)).toBe(place);
    expect(readdirSync(place)).toEqual(['main.ts']);
  });

  test('is used when a server starts, also by another process before', async () => {
    const { directory, builds, unpack, remove } = await openMachine();
    const build_id = await script();
    const place = await unpack(build_id);
    muster.clock.advance(4 * HOUR_MS);
    await unpack(build_id);
    expect(await remove(HOUR_MS)).toEqual([]);
    const { clock } = muster;
    const later: Builds = createBuilds({ database, clock, uploads, directory, available: { kinds: [] } });
    const before = new Date(clock.now().getTime() - HOUR_MS);
    expect(await later.removeUnused({ before, buildsInUse: readNoBuilds })).toEqual([]);
    const long_ago = new Date(clock.now().getTime() - 2 * HOUR_MS);
    utimesSync(place, long_ago, long_ago);
    expect(await later.removeUnused({ before, buildsInUse: readNoBuilds })).toMatchObject([{ build_id }]);
    expect(await builds.removeUnused({ before, buildsInUse: readNoBuilds })).toEqual([]);
  });

  test('stays while a file of an earlier version is in its folder', async () => {
    const { directory, remove } = await openMachine();
    const build_id = crypto.randomUUID();
    mkdirSync(join(directory, build_id), { recursive: true });
    await Bun.write(join(directory, build_id, 'server'), 'of an earlier version');
    muster.clock.advance(DAY_MS);
    expect(await remove(HOUR_MS)).toEqual([]);
    expect(readdirSync(directory)).toEqual([build_id]);
  });

  test('is removed with the first others if a killed process was unpacking it, and not if this one is', async () => {
    const gate = Promise.withResolvers<void>();
    const { directory, unpack, remove } = await openMachine({
      ...UNLIMITED_SPACE,
      createMeter: () => () => gate.promise,
    });
    mkdirSync(join(directory, `${crypto.randomUUID()}.${crypto.randomUUID()}.unfinished`, 'maps'), { recursive: true });
    expect(await remove(HOUR_MS)).toEqual([]);
    expect(readdirSync(directory)).toEqual([]);

    const content = await packTar([{ name: 'server', content: '#!/bin/sh\n', mode: 0o755 }]);
    const file = { kind: 'archive', path: 'server.tar', content, command: ['./server'] };
    const unpacked = unpack(await uploadBuild(muster.api, game, file));
    await waitFor(() => readdirSync(directory).length > 0, 'the build to be unpacked');
    expect(await remove(HOUR_MS)).toEqual([]);
    gate.resolve();
    expect(readdirSync(await unpacked)).toEqual(['server']);
  });
});

test('unused builds: base images are removed with the first ones on a machine that has none any more', async () => {
  const { directory, remove } = await openMachine();
  for (const name of ['base-image.0123456789abcdef', 'base-image.fedcba9876543210.unfinished']) {
    mkdirSync(join(directory, name, 'rootfs'), { recursive: true });
  }
  expect(await remove(HOUR_MS)).toEqual([]);
  expect(readdirSync(directory)).toEqual([]);
});

describe('unused builds: a build that a server uses', () => {
  test('stays, and its last use is when the server ended', async () => {
    const { unpack, remove } = await openMachine();
    const build_id = await script();
    const place = await unpack(build_id);
    muster.clock.advance(4 * HOUR_MS);
    const before = muster.clock.now().getTime();
    expect(await remove(HOUR_MS, async () => new Map([[build_id, muster.clock.now()]]))).toEqual([]);
    const used_ms = statSync(place).mtimeMs;
    // Times of files may be rounded down.
    expect(used_ms).toBeGreaterThanOrEqual(before - 1);
    expect(used_ms).toBeLessThanOrEqual(muster.clock.now().getTime());
    expect(await remove(HOUR_MS)).toEqual([]);
    muster.clock.advance(2 * HOUR_MS);
    expect(await remove(HOUR_MS)).toEqual([build_id]);
  });

  test('keeps its earlier content until the servers that may use it have ended', async () => {
    const { directory, unpack, remove } = await openMachine();
    const build_id = await script();
    const current = await unpack(build_id);
    // Content on an earlier base image.
    const earlier = join(directory, build_id, 'earlier');
    mkdirSync(earlier);
    const first_server = muster.clock.now();
    muster.clock.advance(HOUR_MS);
    utimesSync(earlier, muster.clock.now(), muster.clock.now());
    muster.clock.advance(HOUR_MS);
    await unpack(build_id);
    const later_server = muster.clock.now();
    muster.clock.advance(DAY_MS);
    expect(await remove(HOUR_MS, async () => new Map([[build_id, first_server]]))).toEqual([]);
    expect(existsSync(earlier)).toBe(true);
    expect(await remove(HOUR_MS, async () => new Map([[build_id, later_server]]))).toEqual([build_id]);
    expect([existsSync(earlier), existsSync(current)]).toEqual([false, true]);
  });

  test('stays if the server came while the removal began', async () => {
    const { unpack, remove } = await openMachine();
    const build_id = await script();
    const place = await unpack(build_id);
    muster.clock.advance(4 * HOUR_MS);
    let request_count = 0;
    const buildsInUse = async () => {
      request_count += 1;
      return new Map(request_count > 1 ? [[build_id, muster.clock.now()]] : []);
    };
    expect(await remove(HOUR_MS, buildsInUse)).toEqual([]);
    expect(request_count).toBe(2);
    expect(existsSync(place)).toBe(true);
  });

  test('is unpacked after a removal that has begun, and found complete', async () => {
    const { unpack, remove } = await openMachine();
    const build_id = await script();
    await unpack(build_id);
    muster.clock.advance(4 * HOUR_MS);
    const began = Promise.withResolvers<void>();
    const goOn = Promise.withResolvers<void>();
    let request_count = 0;
    const removed = remove(HOUR_MS, async () => {
      request_count += 1;
      if (request_count > 1) {
        began.resolve();
        await goOn.promise;
      }
      return new Map();
    });
    await began.promise;
    let is_unpacked = false;
    const starts = Promise.all(
      Array.from({ length: 5 }, async () => {
        const directory = await unpack(build_id);
        is_unpacked = true;
        return readdirSync(directory);
      }),
    );
    // The directory exists, but its removal has begun, so no server gets it.
    await letOthersWork();
    expect(is_unpacked).toBe(false);
    goOn.resolve();
    expect(await removed).toEqual([build_id]);
    expect(await starts).toEqual(Array(5).fill(['main.ts']));
  });

  test('stays on the machine of the server, until the server has ended', async () => {
    const build_id = await uploadShell(muster.api, game, 'exec sleep 600');
    const servers = serversOf(muster, game);
    const { body } = await servers.create(await servers.bodyOf(build_id));
    await servers.waitForStart(body.server.id);
    muster.clock.advance(30 * DAY_MS);
    const node_id = readFileSync(join(muster.config.data_directory, 'node-id'), 'utf8').trim();
    const { remove } = await openMachine(UNLIMITED_SPACE, join(muster.config.data_directory, 'builds'));
    const buildsInUse = () => selectBuildsOn(database.queries, [node_id]);
    const { created_at } = await servers.get(body.server.id);
    expect((await buildsInUse()).get(build_id)?.getTime()).toBe(new Date(created_at).getTime());
    expect(await remove(DAY_MS, buildsInUse)).not.toContain(build_id);
    expect(readdirSync(directoryOfBuild(muster, build_id))).not.toEqual([]);
    await servers.destroy(body.server.id);
    await waitForEndEvent(muster, body.server.id);
    muster.clock.advance(2 * DAY_MS);
    expect(await remove(DAY_MS, buildsInUse)).toContain(build_id);
  }, 300_000);
});

test('builds: two are unpacked at a time', async () => {
  const gate = Promise.withResolvers<void>();
  let begun = 0;
  const assertRoom = async () => {
    begun += 1;
    await gate.promise;
  };
  const { unpack } = await openMachine({ ...UNLIMITED_SPACE, assertRoom });
  const builds = await Promise.all(Array.from({ length: 4 }, script));
  const unpacked = Promise.all(builds.map(unpack));
  await waitFor(() => begun >= 2, 'two builds to be unpacked');
  await letOthersWork();
  expect(begun).toBe(2);
  gate.resolve();
  for (const directory of await unpacked) expect(readdirSync(directory)).toEqual(['main.ts']);
  expect(begun).toBe(4);
});

describe('unused builds: on a disk without space', () => {
  test('the least recently used go first, until there is space, except for what was used just now', async () => {
    let low_checks = 0;
    const space = { ...UNLIMITED_SPACE, isLow: async () => low_checks-- > 0 };
    const { unpack, remove } = await openMachine(space);
    const builds = [await script(), await script(), await script()];
    for (const build_id of builds) {
      await unpack(build_id);
      muster.clock.advance(HOUR_MS);
    }
    low_checks = 1;
    expect(await remove(DAY_MS)).toEqual(builds.slice(0, 1));
    expect(await remove(DAY_MS)).toEqual([]);
    await unpack(builds[0] ?? '');
    low_checks = 10;
    expect(await remove(DAY_MS)).toEqual(builds.slice(1));
  });

  test('a build that has just been unpacked stays, also while unused ones are removed all the time', async () => {
    const { unpack, remove } = await openMachine({ ...UNLIMITED_SPACE, isLow: async () => true });
    const builds = await Promise.all(Array.from({ length: 30 }, script));
    // The time on disk is the real one, which is long before that of the service.
    muster.clock.advance(DAY_MS);
    let is_done = false;
    const removing = (async () => {
      while (!is_done) await remove(DAY_MS);
    })();
    for (const build_id of builds) expect(readdirSync(await unpack(build_id))).toEqual(['main.ts']);
    is_done = true;
    await removing;
  });

  test('all go if a build could not be unpacked, and the next attempt has space', async () => {
    let is_full = false;
    const takeRoom = async () => {
      if (is_full) throw storageFull();
    };
    const space = { ...UNLIMITED_SPACE, assertRoom: takeRoom, createMeter: () => takeRoom };
    const { builds, unpack, remove } = await openMachine(space);
    const [unused, wanted] = [await script(), await script()];
    await unpack(unused);
    muster.clock.advance(HOUR_MS);
    let shortages = 0;
    builds.setShortageListener(() => {
      shortages += 1;
    });
    is_full = true;
    await expect(unpack(wanted)).rejects.toMatchObject({ code: 'STORAGE_FULL' });
    expect(shortages).toBe(1);
    is_full = false;
    expect(await remove(DAY_MS)).toEqual([unused]);
    await unpack(wanted);
    expect(await remove(DAY_MS)).toEqual([]);
  });

  test('unused builds stay forever if the setting is 0 and there is space', async () => {
    const directory = await makeDataDirectory();
    const { clock } = muster;
    const events: ServiceEvent[] = [];
    let request_count = 0;
    const feature = await openBuilds({
      database,
      clock,
      uploads,
      data: { folder: () => directory },
      available: { kinds: [] },
      unpacked_days: 0,
      container_base_file: undefined,
      links: createSignedLinks(KEY, clock, muster.config.public_url),
      transfers: createTransfers({ transfers_max: 1, s3: undefined, limits: { is_on: true, scale: 1 } }),
      events: { emit: (event) => void events.push(event) },
      buildsInUse: async () => {
        request_count += 1;
        return new Map();
      },
    });
    const build_id = await script();
    const place = (await feature.api.ensureUnpacked(game, build_id)).directory;
    muster.clock.advance(1_000 * DAY_MS);
    const stop = new AbortController();
    const work = feature.startWork?.(stop.signal) ?? [];
    await waitFor(() => request_count > 0, 'the first step');
    stop.abort();
    await Promise.all(work.map(({ stopped }) => stopped));
    expect(events).toEqual([]);
    expect(existsSync(place)).toBe(true);
  });
});

/** Lets other work go on for some turns of the event loop. */
async function letOthersWork(): Promise<void> {
  for (let turn = 0; turn < 50; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}
