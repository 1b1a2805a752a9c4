import { beforeAll, expect, test } from 'bun:test';
import { existsSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { createBuilds } from '../../../src/features/builds/builds.ts';
import { createUploads } from '../../../src/features/uploads/uploads.ts';
import { openDatabase } from '../../../src/platform/database/database.ts';
import type { ServiceEvent } from '../../../src/platform/events.ts';
import { createDiskObjects } from '../../../src/platform/objects/disk.ts';
import { createPresigner } from '../../../src/platform/objects/presign.ts';
import { buildsOf, sendArchive } from '../../support/builds.ts';
import { makeGame, type TestGame } from '../../support/game.ts';
import { outcomeOf, shareService } from '../../support/suite.ts';
import { packTar } from '../../support/tar.ts';
import { waitFor } from '../../support/wait.ts';

const DAY_MS = 24 * 3_600_000;

const muster = shareService();
let game: TestGame;
beforeAll(async () => {
  game = await makeGame(muster.api, muster.administrator_token);
});

/** Lists the game's builds; with the index of an earlier answer, once they have changed since. */
async function listBuilds(query = ''): Promise<{ build_ids: string[]; index: string }> {
  const { game_id, cloud_token: token } = game;
  const { builds, watch } = await muster.api.ok('GET', `/cloud/games/${game_id}/builds${query}`, { token });
  return { build_ids: builds.map(({ build_id }: { build_id: string }) => build_id), index: watch.index };
}

const folder = (name: string) => join(muster.config.data_directory, 'builds', name);

/** Runs the cleaning step of every ten minutes until a condition is true. */
async function cleanUp(isDone: () => boolean): Promise<void> {
  await using database = openDatabase(muster.database_address, 2);
  const { clock, config } = muster;
  const key = { kty: 'oct', k: Buffer.alloc(32, 'k').toString('base64url') };
  const events: ServiceEvent[] = [];
  const uploads = createUploads({
    database,
    clock,
    events: { emit: (event) => void events.push(event) },
    objects: createDiskObjects(join(config.data_directory, 'objects')),
    presigner: createPresigner(key, clock, config.public_url),
  });
  createBuilds({ database, clock, uploads, directory: folder('.'), available: { kinds: [] } });
  const stop = new AbortController();
  const cleaning = uploads.startCleaning(stop.signal);
  await waitFor(isDone, 'the abandoned files to be removed');
  stop.abort();
  await cleaning.stopped;
  expect(events.filter(({ event }) => event !== 'upload_abandoned')).toEqual([]);
}

test('builds: an incomplete one is removed after a day, whatever its progress', async () => {
  const content = new Uint8Array(await packTar([{ name: 'server', content: '#!/bin/sh\n', mode: 0o755 }]));
  const complete = await sendArchive(muster, game, content);
  expect(outcomeOf(await complete.complete())).toBe('200');
  const abandoned = await sendArchive(muster, game, content);
  // Unpacked but not recorded as complete, as after a lost database.
  await mkdir(folder(`${abandoned.build_id}/maps`), { recursive: true });
  muster.clock.advance(DAY_MS + 1);
  const young = await sendArchive(muster, game, content);
  const watched = await listBuilds();
  expect(watched.build_ids).toContain(abandoned.build_id);

  await cleanUp(() => !existsSync(folder(abandoned.build_id)));
  await waitFor(
    async () => (await buildsOf(muster, game).get(abandoned.build_id)).status === 404,
    'the upload to be removed',
  );
  expect(outcomeOf(await abandoned.complete())).toBe('404 BUILDS_BUILD_NOT_FOUND');
  const changed = await listBuilds(`?watch_index=${watched.index}`);
  expect(changed.build_ids).toEqual([young.build_id, complete.build_id]);
  expect(changed.index).not.toBe(watched.index);
  expect(existsSync(folder(complete.build_id))).toBe(true);
  expect(outcomeOf(await young.complete())).toBe('200');
});
