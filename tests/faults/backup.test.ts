import { expect, test } from 'bun:test';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { sql } from 'drizzle-orm';
import { LOCKS, openDatabase } from '../../src/platform/database/database.ts';
import { commandFor, makeBackupFolder, RESTORED, runOn, waitForEnd } from '../support/backups.ts';
import { openExternalDatabase } from '../support/database/database.ts';
import { IS_FULL_LENGTH } from '../support/full-length.ts';
import { findSeat } from '../support/lobbies/players.ts';
import { enterRoom, makeRoomGame } from '../support/lobbies/room.ts';
import { openSmallS3 } from '../support/objects/small-s3.ts';
import { type Home, makeHome } from '../support/program.ts';
import { waitFor } from '../support/wait.ts';

const restored = { exit_code: 0, output: expect.stringMatching(RESTORED) };

/** Runs a command of a home, and kills it once a condition holds. */
async function killAt(home: Home, command: string[], what: string, isThere: () => Promise<boolean> | boolean) {
  const launched = home.launch({ command });
  const ended = launched.exited.then(() => {
    throw new Error(`it ended before ${what}: ${launched.output()}`);
  });
  await Promise.race([waitFor(isThere, what), ended]);
  ended.catch(() => {});
  await launched.stop('SIGKILL');
}

test('backup and restore: a second one succeeds after the first was killed at any step', async () => {
  await using folder = await makeBackupFolder();
  const { file } = folder;
  await using bucket = await openSmallS3();
  await using external = await openExternalDatabase();
  await using home = await makeHome({ MUSTER_DEMO: 'off', DATABASE_URL: external.url, ...bucket.settings });
  const program = await home.start();
  const game = await makeRoomGame(program);
  const seat = await findSeat(program, game);

  // While it copies files.
  const releaseReads = bucket.holdReads();
  await killAt(home, commandFor('backup', file), 'it reads a file', () => bucket.under_way > 0);
  releaseReads();
  expect([existsSync(file), existsSync(`${file}.unfinished`)]).toEqual([false, true]);
  expect((await runOn(home, 'backup', file)).exit_code).toBe(0);
  expect(existsSync(`${file}.unfinished`)).toBe(false);
  await program.stop('SIGINT');

  // While it writes files; then while it fills the database.
  await using other_bucket = await openSmallS3();
  await using other_external = await openExternalDatabase();
  const elsewhere = { MUSTER_DEMO: 'off', DATABASE_URL: other_external.url, ...other_bucket.settings };
  await using other_home = await makeHome(elsewhere);
  if (IS_FULL_LENGTH) {
    const releaseWrites = other_bucket.holdWrites();
    await killAt(other_home, commandFor('restore', file), 'it writes a file', () => other_bucket.under_way > 0);
    releaseWrites();
  }
  await using database = openDatabase({ url: other_external.url }, 2);
  await home.run({ command: commandFor('migrate'), settings: { DATABASE_URL: other_external.url } });
  await database.transact(async (tx) => {
    await tx.execute(sql`lock table namespaces in share mode`);
    await killAt(other_home, commandFor('restore', file), 'it waits for the table', async () => {
      const waiting = await database.queries.execute(sql`
        select from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock' and query like 'copy "namespaces"%'`);
      return waiting.length > 0;
    });
  });
  const [{ count } = { count: -1 }] = await database.queries.execute(sql`select count(*)::int as count from games`);
  expect(count).toBe(0);
  expect(await runOn(other_home, 'restore', file)).toEqual(restored);
  const next = await other_home.start();
  await waitForEnd(next, game, seat.lobby.lobby_id);
  await enterRoom(await findSeat(next, game));
  await next.stop('SIGINT');

  if (!IS_FULL_LENGTH) return;
  // When it has started the embedded PostgreSQL.
  await using embedded_home = await makeHome({ MUSTER_DEMO: 'off' }, { has_prepared_database: true });
  const pid_file = join(embedded_home.data_directory, 'postgres/cluster/postmaster.pid');
  const isReady = () => existsSync(pid_file) && /^ready/m.test(readFileSync(pid_file, 'utf8'));
  await killAt(embedded_home, commandFor('restore', file), 'PostgreSQL is ready', isReady);
  expect(await runOn(embedded_home, 'restore', file)).toEqual(restored);
  const last = await embedded_home.start();
  await waitForEnd(last, game, seat.lobby.lobby_id);
  await enterRoom(await findSeat(last, game));
  await last.stop('SIGINT');
}, 300_000);

test('commands: one that waits for another process on the database ends at SIGTERM, and changes nothing', async () => {
  await using folder = await makeBackupFolder();
  await using external = await openExternalDatabase();
  await using home = await makeHome({ DATABASE_URL: external.url });
  await using database = openDatabase({ url: external.url }, 2);
  expect((await home.run({ command: commandFor('migrate') })).exit_code).toBe(0);
  const isWaiting = async () => {
    const asking = await database.queries.execute(sql`
      select from pg_stat_activity where datname = current_database() and query like '%pg_try_advisory_lock%'
        and pid <> pg_backend_pid()`);
    // One is the connection that holds the lock.
    return asking.length > 1;
  };
  const waiting: [command: string[], lock: number, not_done: string][] = [
    [commandFor('backup', folder.file), LOCKS.backup, 'The backup was not made'],
    [[...commandFor('upgrade'), '--check'], LOCKS.migration, 'The database was not checked'],
    [commandFor('migrate'), LOCKS.migration, 'The database was not migrated'],
  ];
  for (const [command, lock, not_done] of waiting) {
    await database.exclusively(lock, async () => {
      const launched = home.launch({ command });
      await waitFor(isWaiting, 'it to wait');
      expect(await launched.stop('SIGTERM')).toBe(130);
      expect(launched.output()).toBe(
        `Waiting for another process that starts, migrates, backs up or restores this database.\n${not_done}, because SIGTERM stopped it.\n`,
      );
    });
  }
  expect(existsSync(folder.file)).toBe(false);
}, 300_000);
