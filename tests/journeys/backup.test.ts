import { expect, test } from 'bun:test';
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { sql } from 'drizzle-orm';
import { openDatabase } from '../../src/platform/database/database.ts';
import { commandFor, makeBackupFolder, RESTORED, runOn, waitForEnd } from '../support/backups.ts';
import { openExternalDatabase } from '../support/database/database.ts';
import { IS_FULL_LENGTH } from '../support/full-length.ts';
import type { TestGame } from '../support/game.ts';
import { enterTogether, findSeat, seeEachOther } from '../support/lobbies/players.ts';
import { enterRoom, makeRoomGame } from '../support/lobbies/room.ts';
import { findFreePort } from '../support/network/test-ports.ts';
import { sha256 } from '../support/objects/digest.ts';
import { openSmallS3 } from '../support/objects/small-s3.ts';
import { type Home, makeHome, type Program } from '../support/program.ts';
import { completion, type PartRequest, sendPart } from '../support/uploads.ts';
import { waitFor } from '../support/wait.ts';

/** Calls find repeatedly while work is under way. */
async function whileFinding<Result>(program: Program, game: TestGame, work: () => Promise<Result>): Promise<Result> {
  let found = 0;
  let is_done = false;
  const finders = Array.from({ length: 4 }, async () => {
    while (!is_done) {
      await findSeat(program, game);
      found += 1;
    }
  });
  try {
    await waitFor(() => found > 20, 'finds to be answered');
    return await work();
  } finally {
    is_done = true;
    await Promise.all(finders);
  }
}

/** Two players of an old game get into a new room, whose server starts from the restored build. */
async function playAgain(program: Program, game: TestGame, old_lobby: string): Promise<string> {
  await waitForEnd(program, game, old_lobby);
  const [one, other] = await enterTogether(program, game);
  await seeEachOther(one, other);
  await Promise.all([one.close(), other.close()]);
  return one.lobby_id;
}

const SITE: Record<string, string> = { 'index.html': '<p>', 'a.js': 'one', 'b.js': 'other' };

/** Begins the upload of a site, which shares one file with an earlier site. One of the two others arrives. */
async function beginSite({ api }: Program, { game_id, cloud_token: token }: TestGame): Promise<string> {
  const prepare = async (paths: string[]) => {
    const files = paths.map((path) => ({ path, content_length: SITE[path]?.length, sha256: sha256(SITE[path] ?? '') }));
    return await api.ok('POST', `/cloud/games/${game_id}/cdn/sites`, { token, body: { display_name: 'Site', files } });
  };
  const earlier = await prepare(['index.html']);
  await sendPart(earlier.presigned_requests[0], SITE['index.html'] ?? '');
  expect(await completion({ api }, earlier, token)).toBe('200 complete');
  const { upload_id, presigned_requests } = await prepare(Object.keys(SITE));
  expect(presigned_requests.map(({ path }: PartRequest) => path)).toEqual(['a.js', 'b.js']);
  expect(await sendPart(presigned_requests[0], SITE['a.js'] ?? '')).toBe('200 accepted');
  return upload_id;
}

/** Goes on with that upload where the backup was restored. */
async function completeSite({ api }: Program, { game_id, cloud_token: token }: TestGame, upload_id: string) {
  const path = `/cloud/games/${game_id}/uploads/${upload_id}`;
  expect((await api.ok('GET', path, { token })).upload.received_length).toBe(SITE['index.html']?.length ?? 0);
  const { presigned_requests } = await api.ok('GET', `${path}/requests`, { token });
  expect(presigned_requests.map((request: PartRequest) => request.path)).toEqual(['a.js', 'b.js']);
  for (const request of presigned_requests) await sendPart(request, SITE[request.path] ?? '');
  expect(await completion({ api }, { upload_id }, token)).toBe('200 complete');
}

test('backup: a service with players, from its own PostgreSQL and disk to another PostgreSQL and a bucket, and back', async () => {
  await using folder = await makeBackupFolder();
  await using first_home = await makeHome({ MUSTER_DEMO: 'off' }, { has_prepared_database: true });
  const local_tls = { MUSTER_TLS_LOCAL: 'on', MUSTER_HTTPS_PORT: String(findFreePort()) };
  const first = await first_home.start({ settings: { ...local_tls, MUSTER_PUBLIC_URL: first_home.url } });
  const game = await makeRoomGame(first, { max_players: 100 });
  const [one, other] = await enterTogether(first, game);

  const site = await beginSite(first, game);

  // A backup that is taken during finds has one moment of the database.
  const made = await whileFinding(first, game, () => runOn(first_home, 'backup', folder.file));
  expect(made).toEqual({ exit_code: 0, output: expect.stringContaining(`The backup is ${folder.file} (`) });
  expect(statSync(folder.file).mode & 0o777).toBe(0o600);
  await seeEachOther(one, other);
  await first.stop('SIGINT');

  await using external = await openExternalDatabase();
  await using bucket = await openSmallS3();
  const elsewhere = { MUSTER_DEMO: 'off', DATABASE_URL: external.url, ...bucket.settings };
  await using second_home = await makeHome(elsewhere);
  const restoring = await second_home.run({ command: [...commandFor('restore', folder.file), '--json'] });
  expect([restoring.exit_code, JSON.parse(restoring.output)]).toEqual([
    0,
    { create_ts: expect.any(String), machine_id: expect.any(String), is_other_machine: false },
  ]);
  {
    await using database = openDatabase({ url: external.url }, 1);
    const lobbies = await database.queries.execute(sql`
      select player_count, (
        select count(*)::int from players where players.lobby_id = lobbies.lobby_id and remove_ts is null
      ) as seats from lobbies where stop_ts is null`);
    expect(lobbies.length).toBeGreaterThan(0);
    for (const { player_count, seats } of lobbies) expect(player_count).toBe(seats as number);
  }
  for (const name of ['node-id', 'local-ca.pem', 'local-ca-key.pem']) {
    const read = (home: Home) => readFileSync(join(home.data_directory, name), 'utf8');
    expect(read(second_home)).toBe(read(first_home));
  }

  const second = await second_home.start();
  // Tokens from before the backup are valid.
  const { game: restored } = await second.api.ok('GET', `/cloud/games/${game.game_id}`, {
    token: first.administrator_token,
  });
  expect(restored.game_id).toBe(game.game_id);
  await completeSite(second, game, site);
  const second_lobby = await playAgain(second, game, one.lobby_id);

  // A restore never overwrites data.
  const player = await enterRoom(await findSeat(second, game));
  expect(await runOn(second_home, 'restore', folder.file)).toEqual({
    exit_code: 1,
    output: `The data directory ${second_home.data_directory} is in use by another Muster: stop that one, or set MUSTER_DATA to another directory.\n`,
  });
  await second.stop('SIGTERM');
  const refused = await runOn(second_home, 'restore', folder.file);
  expect(refused.exit_code).toBe(1);
  expect(refused.output).toMatch(
    /^The database has data already \(in the table \w+\), which a restore never overwrites: use an empty one\.\n$/,
  );
  const unchanged = await second_home.start();
  expect((await enterRoom(await findSeat(unchanged, game))).lobby_id).toBe(player.lobby_id);
  await unchanged.stop('SIGINT');

  // A stopped service with an external database and a bucket is backed up by the same command.
  if (!IS_FULL_LENGTH) return;
  const again = join(folder.path, 'again.backup');
  const backing_up = await second_home.run({ command: [...commandFor('backup', again), '--json'] });
  expect([backing_up.exit_code, JSON.parse(backing_up.output)]).toEqual([
    0,
    { file: again, bytes: statSync(again).size },
  ]);
  await using third_home = await makeHome({ MUSTER_DEMO: 'off' }, { has_prepared_database: true });
  expect(await runOn(third_home, 'restore', again)).toEqual({
    exit_code: 0,
    output: expect.stringMatching(RESTORED),
  });
  const third = await third_home.start();
  await playAgain(third, game, second_lobby);
  await third.stop('SIGINT');
}, 300_000);

test('backup: where there is no database, it says so and makes none', async () => {
  await using folder = await makeBackupFolder();
  await using home = await makeHome();
  expect(await runOn(home, 'backup', folder.file)).toEqual({
    exit_code: 1,
    output: `There is no database in ${home.data_directory}: set MUSTER_DATA or DATABASE_URL as for "muster serve".\n`,
  });
  await using external = await openExternalDatabase();
  const run = await home.run({
    command: commandFor('backup', folder.file),
    settings: { DATABASE_URL: external.url },
  });
  expect(run).toEqual({
    exit_code: 1,
    output: 'The database has no data of Muster yet: start "muster serve" first.\n',
  });
}, 300_000);
