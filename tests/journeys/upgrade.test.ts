import { expect, test } from 'bun:test';
import { sql } from 'drizzle-orm';
import { readUpgrade } from '../../src/platform/database/migrate.ts';
import { StartError } from '../../src/platform/errors.ts';
import { VERSION } from '../../src/platform/version.ts';
import { COMMAND, makeHome } from '../support/program.ts';
import { rejectionOf } from '../support/refusal.ts';
import { shareService } from '../support/suite.ts';

const CHECK = { command: [...COMMAND, 'upgrade', '--check'] };

const muster = shareService();

test('upgrade --check: refuses without a database, and says while the service runs that this release can start', async () => {
  await using home = await makeHome({}, { has_prepared_database: false });
  const missing = await home.run(CHECK);
  expect(missing).toEqual({ exit_code: 1, output: expect.stringContaining('There is no database in') });
  const { stop } = await home.start();
  // The executable's version also names its commit.
  const checked = { exit_code: 0, output: expect.stringMatching(/of Muster \S+, needs no migration/) };
  expect(await home.run(CHECK)).toEqual(checked);
  const { output } = await home.run({ command: [...CHECK.command, '--json'] });
  const { version, database_version, ...others } = JSON.parse(output);
  expect([database_version, others]).toEqual([version, { pending_migrations: 0 }]);
  await stop('SIGTERM');
  expect(await home.run(CHECK)).toEqual(checked);
  expect((await home.run({ command: [...COMMAND, 'upgrade'] })).exit_code).toBe(2);
}, 300_000);

test('upgrade --check: counts the migrations that an older database lacks, and refuses a newer one', async () => {
  const { queries } = muster.database;
  expect(await readUpgrade(muster.database)).toEqual({ release: VERSION, pending_count: 0 });
  await queries.execute(sql`create table kept as select * from migrations`);
  try {
    await queries.execute(sql`
      delete from migrations where created_at in (select created_at from kept order by created_at desc limit 2)`);
    expect(await readUpgrade(muster.database)).toEqual({ release: VERSION, pending_count: 2 });
    await queries.execute(sql`insert into migrations (hash, created_at, release) values ('x', 9999999999999, '9.9.9')`);
    const { message } = await rejectionOf(StartError, readUpgrade(muster.database));
    expect(message).toContain('The database was migrated by Muster 9.9.9');
    await queries.execute(sql`update migrations set release = null where hash = 'x'`);
    const { message: unknown } = await rejectionOf(StartError, readUpgrade(muster.database));
    expect(unknown).toBe(
      `The database was migrated by a later release of Muster than this Muster ${VERSION}: start that release or a later one, or restore an older backup.`,
    );
  } finally {
    await queries.execute(sql`truncate migrations`);
    await queries.execute(sql`insert into migrations select * from kept`);
  }
});
