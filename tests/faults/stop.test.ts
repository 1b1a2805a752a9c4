import { expect, test } from 'bun:test';
import { LOCKS, openDatabase } from '../../src/platform/database/database.ts';
import { waitForLockWaiter } from '../support/database/advisory-locks.ts';
import { openExternalDatabase } from '../support/database/database.ts';
import { postgresOf } from '../support/processes.ts';
import { makeHome } from '../support/program.ts';

test('stop: SIGTERM ends the service within half a minute even if its database is frozen', async () => {
  await using home = await makeHome({ MUSTER_DEMO: 'off', MUSTER_LOG: 'error' }, { has_prepared_database: true });
  const program = await home.start();
  const postgres = postgresOf(home.data_directory);
  for (const pid of home.processes()) if (pid !== program.pid) process.kill(pid, 'SIGSTOP');
  const began = performance.now();
  const exit_code = await program.stop('SIGTERM').finally(() => process.kill(postgres, 'SIGCONT'));
  expect(exit_code).toBe(1);
  // Beyond the half minute: the time that a busy machine may add.
  expect(performance.now() - began).toBeWithin(25_000, 45_000);
  expect(program.output()).toContain('"event":"service_stopped_late"');
}, 300_000);

test('stop: SIGHUP, from a closed terminal, is a graceful stop', async () => {
  await using home = await makeHome({ MUSTER_LOG: 'info' }, { has_prepared_database: true });
  const program = await home.start();
  expect(await program.stop('SIGHUP')).toBe(0);
  expect(program.output()).toContain('service_stopping');
  expect(home.processes()).toEqual([]);
}, 300_000);

test('stop: SIGTERM ends a start that waits because another process migrates the database', async () => {
  await using external = await openExternalDatabase();
  await using home = await makeHome({ DATABASE_URL: external.url, MUSTER_DEMO: 'off', MUSTER_LOG: 'info' });
  await using database = openDatabase({ url: external.url }, 1);
  await database.exclusively(LOCKS.migration, async () => {
    const program = home.launch();
    await waitForLockWaiter(database);
    expect(await program.stop('SIGTERM')).toBe(0);
    expect(program.output()).toContain('"reason":"SIGTERM","event":"service_stopping"');
  });
}, 300_000);
