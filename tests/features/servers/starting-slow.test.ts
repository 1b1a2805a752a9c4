import { expect, test } from 'bun:test';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { makeGame } from '../../support/game.ts';
import { openSmallS3 } from '../../support/objects/small-s3.ts';
import { serversOf, startedBy, uploadShell } from '../../support/servers.ts';
import { openTestService } from '../../support/service.ts';
import { waitFor } from '../../support/wait.ts';

/** More than start at one time. */
const SLOW = 70;
/** Builds of one game that a machine unpacks at one time. */
const UNPACKED_AT_ONCE = 2;

test('starting: builds of one game that take long to unpack delay no server of another game', async () => {
  await using bucket = await openSmallS3();
  await using muster = await openTestService(bucket.settings);
  const slow_game = await makeGame(muster.api, muster.administrator_token);
  const slow = serversOf(muster, slow_game);
  const builds: string[] = [];
  for (let index = 0; index < SLOW; index += 1) {
    builds.push(await uploadShell(muster.api, slow_game, 'exec sleep 600'));
  }
  // Each was unpacked when it was uploaded; a new machine has no unpacked builds.
  for (const build of builds) await rm(join(muster.config.data_directory, 'builds', build), { recursive: true });
  const release = bucket.holdReads();
  const ids: string[] = [];
  for (const build of builds) ids.push((await slow.create(await slow.bodyOf(build))).body.server.id);
  await waitFor(() => bucket.under_way === UNPACKED_AT_ONCE, 'builds to be unpacked');

  // Its build is unpacked when it is uploaded, beside those of the other game.
  const game = await makeGame(muster.api, muster.administrator_token);
  const quick = serversOf(muster, game);
  const body = await quick.bodyOf(await uploadShell(muster.api, game, 'exec sleep 600'));
  const { server } = (await quick.create(body)).body;
  await quick.waitForStart(server.id);
  // The event comes after the change in the database.
  await waitFor(() => startedBy(muster).length > 0, 'the start to be logged');
  expect(startedBy(muster)).toEqual([server.id]);
  release();
  for (const id of ids) await slow.waitForStart(id);
}, 300_000);
