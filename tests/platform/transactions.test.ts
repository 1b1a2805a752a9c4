import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test';
import { sql } from 'drizzle-orm';
import { type Database, type DatabaseAddress, openDatabase, type Tx } from '../../src/platform/database/database.ts';
import type { DedicatedConnection } from '../../src/platform/database/dedicated-connection.ts';
import { toServiceError } from '../../src/platform/database/failures.ts';
import { ServiceError } from '../../src/platform/errors.ts';
import { openTestDatabase } from '../support/database/database.ts';
import { rejectionOf } from '../support/refusal.ts';
import { waitFor } from '../support/wait.ts';

let opened: AsyncDisposable;
let address: DatabaseAddress;
let database: Database;
beforeAll(async () => {
  const own = await openTestDatabase();
  opened = own;
  address = own.address;
  database = openDatabase(address, 4);
  await database.queries.execute(sql`create table counters (name text primary key, value int not null)`);
});
afterAll(async () => {
  await database[Symbol.asyncDispose]();
  await opened[Symbol.asyncDispose]();
});
beforeEach(async () => {
  await database.queries.execute(sql`delete from counters`);
  await database.queries.execute(sql`insert into counters values ('a', 0), ('b', 0)`);
});

const increment = (tx: Tx, name: string) => tx.execute(sql`update counters set value = value + 1 where name = ${name}`);

async function values(): Promise<Record<string, number>> {
  const rows = await database.queries.execute<{ name: string; value: number }>(sql`select * from counters`);
  return Object.fromEntries(rows.map(({ name, value }) => [name, value]));
}

/** Returns a function that holds its first `size` callers until all of them have called it. Later callers go on at once. */
function makeMeeting(size: number): () => Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  let arrived = 0;
  return async () => {
    arrived += 1;
    if (arrived >= size) resolve();
    await promise;
  };
}

describe('a transaction', () => {
  test('that throws changes nothing, and is not repeated', async () => {
    let attempts = 0;
    const work = database.transact(async (tx) => {
      attempts += 1;
      await increment(tx, 'a');
      throw new ServiceError('GAME_NOT_FOUND', {});
    });
    expect((await rejectionOf(ServiceError, work)).code).toBe('GAME_NOT_FOUND');
    expect(attempts).toBe(1);
    expect(await values()).toEqual({ a: 0, b: 0 });
  });

  test('that violates a constraint is not repeated', async () => {
    let attempts = 0;
    const work = database.transact(async (tx) => {
      attempts += 1;
      await tx.execute(sql`insert into counters values ('a', 1)`);
    });
    await rejectionOf(Error, work);
    expect(attempts).toBe(1);
  });

  test('that deadlocks with another is repeated and committed once', async () => {
    const meet = makeMeeting(2);
    let attempts = 0;
    const incrementBoth = (first: string, second: string) =>
      database.transact(async (tx) => {
        attempts += 1;
        await increment(tx, first);
        await meet();
        await increment(tx, second);
        return `${first}${second}`;
      });
    // Each has one row and wants the other: PostgreSQL ends one of them.
    expect(await Promise.all([incrementBoth('a', 'b'), incrementBoth('b', 'a')])).toEqual(['ab', 'ba']);
    expect(attempts).toBeGreaterThan(2);
    expect(await values()).toEqual({ a: 2, b: 2 });
  });

  test('that read rows which another has changed since is repeated on the new ones', async () => {
    const meet = makeMeeting(5);
    let attempts = 0;
    const incrementAsRead = () =>
      database.transact(async (tx) => {
        attempts += 1;
        await tx.execute(sql`set transaction isolation level serializable`);
        const [row] = await tx.execute<{ value: number }>(sql`select value from counters where name = 'a'`);
        await meet();
        await tx.execute(sql`update counters set value = ${(row?.value ?? 0) + 1} where name = 'a'`);
      });
    await using other = openDatabase(address, 2);
    const lone = other.transact(async (tx) => {
      await meet();
      await increment(tx, 'a');
    });
    await Promise.all([lone, ...Array.from({ length: 4 }, incrementAsRead)]);
    expect(attempts).toBeGreaterThan(4);
    expect(await values()).toEqual({ a: 5, b: 0 });
  });

  test('that never succeeds ends with DATABASE_BUSY after five attempts, and changes nothing', async () => {
    let attempts = 0;
    const work = database.transact(async (tx) => {
      attempts += 1;
      await increment(tx, 'a');
      await tx.execute(sql`do $$ begin raise exception 'again' using errcode = '40001'; end $$`);
    });
    expect(toServiceError(await rejectionOf(Error, work))?.code).toBe('DATABASE_BUSY');
    expect(attempts).toBe(5);
    expect(await values()).toEqual({ a: 0, b: 0 });
  });

  test("has PostgreSQL's own limits on every connection, and compiles no queries", async () => {
    const read = sql`select name, setting from pg_settings where name in ('statement_timeout', 'idle_in_transaction_session_timeout', 'application_name', 'jit')`;
    const settings = await Promise.all(
      Array.from({ length: 4 }, () => database.transact((tx) => tx.execute<{ name: string; setting: string }>(read))),
    );
    for (const rows of settings) {
      expect(Object.fromEntries(rows.map(({ name, setting }) => [name, setting]))).toEqual({
        application_name: 'muster',
        statement_timeout: '10000',
        idle_in_transaction_session_timeout: '15000',
        jit: 'off',
      });
    }
  });

  test('with a statement over its limit ends with DATABASE_BUSY', async () => {
    const work = database.transact(async (tx) => {
      await tx.execute(sql`set local statement_timeout = 20`);
      await tx.execute(sql`select pg_sleep(60)`);
    });
    expect(toServiceError(await rejectionOf(Error, work))?.code).toBe('DATABASE_BUSY');
  });

  test('that is left idle is ended by PostgreSQL, which frees its locks', async () => {
    const begun = Promise.withResolvers<void>();
    const stopped = Promise.withResolvers<void>();
    const work = database.transact(async (tx) => {
      await tx.execute(sql`set local idle_in_transaction_session_timeout = 20`);
      await increment(tx, 'a');
      begun.resolve();
      await stopped.promise;
      await increment(tx, 'b');
    });
    const refused = rejectionOf(Error, work);
    await begun.promise;
    await waitFor(async () => {
      const rows = await database.queries.execute(
        sql`select 1 from pg_stat_activity where datname = current_database() and state = 'idle in transaction'`,
      );
      return rows.length === 0;
    }, 'PostgreSQL to end the transaction');
    stopped.resolve();
    expect(toServiceError(await refused)?.status).toBe(503);
    expect(await values()).toEqual({ a: 0, b: 0 });
  });

  test.each([98, 99, 100, 101])(
    'that begins behind %d statements on its connection is still one transaction',
    async (ahead) => {
      await using small = openDatabase(address, 2);
      const has_locked = Promise.withResolvers<void>();
      const goes_on = Promise.withResolvers<void>();
      const locking = small.transact(async (tx) => {
        await increment(tx, 'a');
        has_locked.resolve();
        await goes_on.promise;
      });
      await has_locked.promise;
      // Opens the only free connection: its first statement waits for the lock, the others wait behind it.
      await small.queries.execute(sql`select 1`);
      const statements = Array.from({ length: ahead }, async () => await increment(small.queries, 'a'));
      await waitFor(async () => {
        const waiting = await database.queries.execute(
          sql`select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
        );
        return waiting.length > 0;
      }, 'a statement to wait for the lock');
      const work = small.transact(async (tx) => {
        await increment(tx, 'b');
        throw new ServiceError('GAME_NOT_FOUND', {});
      });
      goes_on.resolve();
      expect((await rejectionOf(ServiceError, work)).code).toBe('GAME_NOT_FOUND');
      await Promise.all([locking, ...statements]);
      expect(await values()).toEqual({ a: ahead + 1, b: 0 });
    },
  );
});

test('dedicated connections look up rows by an index, even in a table that was empty when the statement was planned', async () => {
  const wanted = sql`unnest('{a,b,c,d,e,f,g,h,i,j,k,l}'::text[]) as wanted (name)`;
  const planOf = async (queries: DedicatedConnection) =>
    JSON.stringify(await queries.execute(sql`explain select from ${wanted} join counters using (name)`));
  expect(await planOf(database.queries)).toContain('Seq Scan on counters');
  expect(await planOf(database.openDedicatedConnection())).not.toContain('Seq Scan');
});
