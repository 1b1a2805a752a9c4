import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'bun:test';
import { sql } from 'drizzle-orm';
import {
  type Database,
  type DatabaseAddress,
  openDatabase,
  type Queries,
  type Tx,
} from '../../src/platform/database/database.ts';
import { toServiceError } from '../../src/platform/database/failures.ts';
import { openTestDatabase } from '../support/database/database.ts';
import { openDatabaseProxy } from '../support/network/database-proxy.ts';
import { rejectionOf } from '../support/refusal.ts';
import { waitFor } from '../support/wait.ts';

let opened: AsyncDisposable;
let address: DatabaseAddress;
let observer: Database;
let proxied: Awaited<ReturnType<typeof openDatabaseProxy>>;
beforeAll(async () => {
  const own = await openTestDatabase();
  opened = own;
  address = own.address;
  proxied = await openDatabaseProxy(address);
  observer = openDatabase(address, 1);
  await observer.queries.execute(sql`create table steps (name text)`);
});
afterAll(async () => {
  await observer[Symbol.asyncDispose]();
  await proxied[Symbol.asyncDispose]();
  await opened[Symbol.asyncDispose]();
});
beforeEach(async () => {
  await observer.queries.execute(sql`delete from steps`);
});

const addStep = (queries: Queries, name: string) => queries.execute(sql`insert into steps values (${name})`);

async function steps(): Promise<string[]> {
  return (await observer.queries.execute<{ name: string }>(sql`select name from steps order by name`)).map(
    ({ name }) => name,
  );
}

async function backendOf(queries: Queries): Promise<number> {
  const [row] = await queries.execute<{ pid: number }>(sql`select pg_backend_pid() as pid`);
  return row?.pid ?? 0;
}

/** Waits until a query is answered: the driver reports the end of the lost connection to its first caller. */
async function nextBackend(database: Database): Promise<number> {
  return await waitFor(() => backendOf(database.queries).catch(() => undefined), 'a query to be answered');
}

/** Ends a connection like an administrator, and waits until it is gone. */
async function terminate(pid: number): Promise<void> {
  await observer.queries.execute(sql`select pg_terminate_backend(${pid}, 5000)`);
}

const codeOf = async (work: PromiseLike<unknown>) => toServiceError(await rejectionOf(Error, work))?.code;

/** Ways to lose a connection: of the embedded PostgreSQL, and of one over a network. */
const LOSSES = [
  { name: 'PostgreSQL ends the connection', address: () => address, lose: terminate },
  {
    name: 'the network is cut for a moment',
    address: () => ({ url: proxied.url }),
    async lose() {
      await proxied.proxy.cut();
      await proxied.proxy.heal();
    },
  },
];
for (const { name, address, lose } of LOSSES) {
  describe(`lost connection: ${name}`, () => {
    let database: Database;
    beforeEach(() => {
      database = openDatabase(address(), 1);
    });
    afterEach(async () => {
      await database[Symbol.asyncDispose]();
    });

    test('idle: the next query uses another one', async () => {
      const pid = await backendOf(database.queries);
      await lose(pid);
      expect(await nextBackend(database)).not.toBe(pid);
    });

    test('under a statement: DATABASE_UNAVAILABLE, and the next one is answered', async () => {
      const pid = await backendOf(database.queries);
      const code = codeOf(database.queries.execute(sql`select pg_sleep(60)`));
      await waitUntilAsleep(pid);
      await lose(pid);
      expect(await code).toBe('DATABASE_UNAVAILABLE');
      expect(await nextBackend(database)).not.toBe(pid);
    });

    const AFTERWARDS: { what: string; end(tx: Tx): Promise<unknown> }[] = [
      { what: 'continues', end: (tx) => addStep(tx, 'second') },
      { what: 'has nothing left to do', end: async () => {} },
      { what: 'throws', end: () => Promise.reject(new Error('no more')) },
      { what: 'ignores failures', end: (tx) => addStep(tx, 'second').catch(() => {}) },
    ];
    for (const { what, end } of AFTERWARDS) {
      test(`between the statements of a transaction that ${what}: DATABASE_UNAVAILABLE, and nothing is committed`, async () => {
        const lost = Promise.withResolvers<void>();
        const ended = Promise.withResolvers<void>();
        const begun = Promise.withResolvers<number>();
        const work = database.transact(async (tx) => {
          await addStep(tx, 'first');
          begun.resolve(await backendOf(tx));
          await lost.promise;
          await end(tx).finally(ended.resolve);
        });
        const code = codeOf(work);
        await lose(await begun.promise);
        expect(await code).toBe('DATABASE_UNAVAILABLE');
        // The pool replaces the lost connection; the transaction does not continue on the new one.
        await nextBackend(database);
        lost.resolve();
        await ended.promise;
        await nextBackend(database);
        expect(await steps()).toEqual([]);
      });
    }

    test('under a statement of a transaction that ignores failures: DATABASE_UNAVAILABLE, and nothing is committed', async () => {
      const begun = Promise.withResolvers<number>();
      const ended = Promise.withResolvers<void>();
      const work = database.transact(async (tx) => {
        await addStep(tx, 'first');
        begun.resolve(await backendOf(tx));
        await tx.execute(sql`select pg_sleep(60)`).catch(() => {});
        await addStep(tx, 'second').catch(ended.resolve);
      });
      const code = codeOf(work);
      const pid = await begun.promise;
      await waitUntilAsleep(pid);
      await lose(pid);
      expect(await code).toBe('DATABASE_UNAVAILABLE');
      await ended.promise;
      expect(await nextBackend(database)).not.toBe(pid);
      expect(await steps()).toEqual([]);
    });
  });
}

test('listening: after a lost connection it resumes and reports possible gaps', async () => {
  await using database = openDatabase(address, 1);
  const received: string[] = [];
  let connected = 0;
  await database.listen(
    'things',
    (payload) => received.push(payload),
    () => {
      connected += 1;
    },
  );
  expect(connected).toBe(1);
  const notify = (payload: string) => observer.queries.execute(sql`select pg_notify('things', ${payload})`);
  await notify('before');
  await waitFor(() => received.length === 1, 'the first notification');
  for (let times = 2; times < 5; times += 1) {
    await observer.queries.execute(
      sql`select pg_terminate_backend(pid, 5000) from pg_stat_activity where query ilike 'listen %' and datname = current_database()`,
    );
    await waitFor(() => connected === times, 'it to listen again');
  }
  await notify('after');
  await waitFor(() => received.length > 1, 'the next notification');
  expect(received).toEqual(['before', 'after']);
});

test('lost connection: PostgreSQL ends it but the network keeps it open: the statement fails, and the next one uses another', async () => {
  await using hidden = await openDatabaseProxy(address);
  await using database = openDatabase({ url: hidden.url }, 1);
  hidden.proxy.hideEnds();
  const pid = await backendOf(database.queries);
  const code = codeOf(database.queries.execute(sql`select pg_sleep(60)`));
  await waitUntilAsleep(pid);
  await terminate(pid);
  expect(await code).toBe('DATABASE_UNAVAILABLE');
  const while_idle = await nextBackend(database);
  await terminate(while_idle);
  expect(await nextBackend(database)).not.toBe(while_idle);
});

test('lost connection: closed while it opens and the driver reads its types: only the statement fails', async () => {
  await using slow = await openDatabaseProxy(address);
  slow.proxy.stallAfter('typarray');
  const database = openDatabase({ url: slow.url }, 1);
  const code = codeOf(backendOf(database.queries));
  await waitFor(() => slow.proxy.connections > 0, 'the connection');
  await database[Symbol.asyncDispose]();
  expect(await code).toBe('DATABASE_UNAVAILABLE');
});

async function waitUntilAsleep(pid: number): Promise<void> {
  await waitFor(async () => {
    const rows = await observer.queries.execute(
      sql`select 1 from pg_stat_activity where pid = ${pid} and state = 'active' and query like 'select pg_sleep%'`,
    );
    return rows.length > 0;
  }, 'the statement to run');
}
