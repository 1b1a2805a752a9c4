import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { sql } from 'drizzle-orm';
import journal from '../../drizzle/meta/_journal.json' with { type: 'json' };
import { type Database, LOCKS, openDatabase } from '../../src/platform/database/database.ts';
import { describeUnavailability, rootCodeOf, toServiceError } from '../../src/platform/database/failures.ts';
import { migrateDatabase } from '../../src/platform/database/migrate.ts';
import { ServiceError } from '../../src/platform/errors.ts';
import { openExternalDatabase } from '../support/database/database.ts';
import { rejectionOf } from '../support/refusal.ts';
import { waitFor } from '../support/wait.ts';

describe('migrations of an empty database', () => {
  let external: Awaited<ReturnType<typeof openExternalDatabase>>;
  let database: Database;
  beforeEach(async () => {
    external = await openExternalDatabase();
    database = openDatabase({ url: external.url }, 2);
  });
  afterEach(async () => {
    await database[Symbol.asyncDispose]();
    await external[Symbol.asyncDispose]();
  });

  /** Returns the migrations that were applied, and each column of each table. */
  async function read() {
    const done = await database.queries.execute(sql`select id, created_at from migrations order by id`);
    const columns = await database.queries.execute(
      sql`select table_name, column_name, data_type from information_schema.columns where table_schema = 'public' order by 1, 2`,
    );
    return { done: [...done], columns: [...columns] };
  }

  const EACH_ONCE = journal.entries.map(({ when }, index) => ({ id: index + 1, created_at: String(when) }));

  test('change nothing in a second run', async () => {
    await migrateDatabase(database);
    const first = await read();
    expect(first.done).toEqual(EACH_ONCE);
    expect(first.columns).toContainEqual({ table_name: 'topics', column_name: 'version', data_type: 'bigint' });
    await migrateDatabase(database);
    expect(await read()).toEqual(first);
  });

  test('run once when five services start at once', async () => {
    const services = Array.from({ length: 5 }, () => openDatabase({ url: external.url }, 2));
    await Promise.all(services.map((service) => migrateDatabase(service)));
    for (const service of services) await service[Symbol.asyncDispose]();
    expect((await read()).done).toEqual(EACH_ONCE);
  });

  test('wait for a table for a few seconds only, because all later statements would wait behind them', async () => {
    await migrateDatabase(database);
    await database.queries.execute(sql`delete from migrations where id = (select max(id) from migrations)`);
    const release = Promise.withResolvers<void>();
    const reading = database.transact(async (tx) => {
      await tx.execute(sql`lock table migrations in access exclusive mode`);
      await release.promise;
    });
    const failure = await rejectionOf(Error, migrateDatabase(database));
    expect([rootCodeOf(failure), describeUnavailability(failure)]).toEqual(['55P03', expect.any(String)]);
    release.resolve();
    await reading;
  });

  test('of a service that loses its connection change nothing and do not block others', async () => {
    // It gets the lock, and waits for a table that another transaction reads.
    await database.queries.execute(
      sql`create table migrations (id serial primary key, hash text not null, created_at bigint)`,
    );
    const release = Promise.withResolvers<void>();
    const reading = database.transact(async (tx) => {
      await tx.execute(sql`lock table migrations in access exclusive mode`);
      await release.promise;
    });
    const [failure, lost] = await Promise.all([
      migrateDatabase(database).then(
        () => 'it was done',
        () => 'it failed',
      ),
      (async () => {
        const holder = await waitFor(async () => {
          const [row] = await database.queries.execute<{ pid: number }>(
            sql`select pid from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
          );
          return row?.pid;
        }, 'the migration to run');
        await database.queries.execute(sql`select pg_terminate_backend(${holder}, 5000)`);
        return holder;
      })(),
    ]);
    release.resolve();
    await reading;
    expect(failure).toBe('it failed');
    expect(lost).toBeGreaterThan(0);
    expect((await read()).done).toEqual([]);
    await migrateDatabase(database);
    expect((await read()).done).toEqual(EACH_ONCE);
  });

  test('exclusively: work under one lock runs one at a time, and a failure releases the lock', async () => {
    let running_count = 0;
    let running_max = 0;
    const work = (name: string) =>
      database.exclusively(LOCKS.first_start, async (connection) => {
        running_count += 1;
        running_max = Math.max(running_max, running_count);
        await connection.execute(sql`select pg_sleep(0.01)`);
        running_count -= 1;
        if (name === 'b') throw new Error('it fails');
        return name;
      });
    const results = await Promise.allSettled(['a', 'b', 'c', 'd'].map(work));
    expect(results.map((result) => (result.status === 'fulfilled' ? result.value : 'failed'))).toEqual([
      'a',
      'failed',
      'c',
      'd',
    ]);
    expect(running_max).toBe(1);
  });

  test('exclusively: work that loses its connection, and with it the lock, gets a signal and no other connection, and fails', async () => {
    const readPid = sql`select pg_backend_pid() as pid`;
    let later: unknown;
    const working = database.exclusively(LOCKS.first_start, async (connection, lost) => {
      const [row] = await connection.execute<{ pid: number }>(readPid);
      await database.queries.execute(sql`select pg_terminate_backend(${row?.pid ?? 0})`);
      await waitFor(() => lost.aborted, 'the loss of the lock');
      later = await connection.execute(readPid).catch((error: unknown) => error);
    });
    expect((await rejectionOf(ServiceError, working)).code).toBe('DATABASE_UNAVAILABLE');
    expect(toServiceError(later)?.code).toBe('DATABASE_UNAVAILABLE');
    expect(await database.exclusively(LOCKS.first_start, async () => 'free')).toBe('free');
  });

  test('exclusively: work under different locks runs concurrently', async () => {
    const meet = Promise.withResolvers<void>();
    const one = database.exclusively(LOCKS.first_start, () => meet.promise);
    await database.exclusively(LOCKS.migration, async () => meet.resolve());
    await one;
    expect(LOCKS.first_start).not.toBe(LOCKS.migration);
  });
});
