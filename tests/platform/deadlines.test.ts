import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { sql } from 'drizzle-orm';
import { type DatabaseAddress, LOCKS, openDatabase } from '../../src/platform/database/database.ts';
import { DEADLINES } from '../../src/platform/database/deadlines.ts';
import { toServiceError } from '../../src/platform/database/failures.ts';
import { openTestDatabase } from '../support/database/database.ts';
import { openDatabaseProxy } from '../support/network/database-proxy.ts';
import { rejectionOf } from '../support/refusal.ts';
import { waitFor } from '../support/wait.ts';

const SHORT = { query_ms: 100, pool_wait_ms: 100, transaction_ms: 100 };

describe('deadlines: every wait for the database ends', () => {
  let opened: AsyncDisposableStack;
  let address: DatabaseAddress;
  let proxied: Awaited<ReturnType<typeof openDatabaseProxy>>;
  beforeAll(async () => {
    opened = new AsyncDisposableStack();
    ({ address } = opened.use(await openTestDatabase()));
    proxied = opened.use(await openDatabaseProxy(address));
    await using database = openDatabase(address, 1);
    await database.queries.execute(sql`create table done (name text)`);
  });
  afterAll(async () => {
    await opened.disposeAsync();
  });

  /**
   * Repeats the work until it ends in time: on a busy machine even opening a connection can take as long as these
   * limits.
   */
  const whenInTime = <Result>(work: () => Promise<Result>) =>
    waitFor(() => work().catch(() => undefined), 'an answer in time');

  const codeOf = async (work: PromiseLike<unknown>) => toServiceError(await rejectionOf(Error, work))?.code;

  test("deadlines: PostgreSQL's own limit of a statement is below that of the service, so it cancels a statement first", async () => {
    await using database = openDatabase(address, 1);
    const [row] = await database.queries.execute<{ limit_ms: number }>(sql`
      select setting::int as limit_ms from pg_settings where name = 'statement_timeout'`);
    expect(row?.limit_ms).toBeGreaterThan(0);
    expect(row?.limit_ms).toBeLessThan(DEADLINES.query_ms);
  });

  test('deadlines: a copy of whole tables has none, whatever the database or its user sets', async () => {
    await using database = openDatabase(address, 1);
    const connection = database.openCopyConnection();
    const rows = await connection`
      select distinct source from pg_settings where name in ('statement_timeout', 'lock_timeout')`;
    expect([...rows]).toEqual([{ source: 'client' }]);
    await connection.end();
  });

  for (const way of ['over the socket', 'over TCP'] as const) {
    test(`a statement that takes too long, ${way}: DATABASE_BUSY, and PostgreSQL cancels it`, async () => {
      await using database = openDatabase(way === 'over TCP' ? { url: proxied.url } : address, 1, SHORT);
      await using observer = openDatabase(address, 1);
      expect(await codeOf(database.queries.execute(sql`select pg_sleep(60)`))).toBe('DATABASE_BUSY');
      await waitFor(async () => {
        const rows = await observer.queries.execute(
          sql`select 1 from pg_stat_activity where state = 'active' and datname = current_database() and query like 'select pg_sleep%'`,
        );
        return rows.length === 0;
      }, 'the statement to be stopped');
      const rows = await whenInTime(() => database.queries.execute(sql`select 1 as one`));
      expect([...rows]).toEqual([{ one: 1 }]);
    });
  }

  test('a statement that takes too long, and cannot be cancelled: DATABASE_BUSY, and nothing else fails', async () => {
    await using own_proxied = await openDatabaseProxy(address);
    await using database = openDatabase({ url: own_proxied.url }, 1, SHORT);
    await whenInTime(() => database.queries.execute(sql`select 1`));
    own_proxied.proxy.stall();
    own_proxied.proxy.refuse();
    expect(await codeOf(database.queries.execute(sql`select 2`))).toBe('DATABASE_BUSY');
    // Once another connection has been refused, so has that of the request to cancel.
    await using other = openDatabase({ url: own_proxied.url }, 1);
    expect(await codeOf(other.queries.execute(sql`select 3`))).toBe('DATABASE_UNAVAILABLE');
  });

  test('a statement that times out while its connection opens: the connection serves the next one', async () => {
    await using own_proxied = await openDatabaseProxy(address);
    await using database = openDatabase({ url: own_proxied.url }, 1, SHORT);
    const release = own_proxied.proxy.hold();
    expect(await codeOf(database.queries.execute(sql`select 1`))).toBe('DATABASE_BUSY');
    // There can be no other connection.
    own_proxied.proxy.refuse();
    release();
    const rows = await whenInTime(() => database.queries.execute(sql`select 2 as two`));
    expect([...rows]).toEqual([{ two: 2 }]);
  });

  test('a statement and a transaction without a free connection: DATABASE_BUSY, and neither runs later', async () => {
    await using database = openDatabase(address, 2, { ...SHORT, transaction_ms: 60_000 });
    await using observer = openDatabase(address, 1);
    const release = Promise.withResolvers<void>();
    const useBoth = () => Promise.all([1, 2].map(() => database.transact((tx) => tx.execute(sql`select 1`))));
    await whenInTime(useBoth);
    let holding = 0;
    const hold = () =>
      database.transact(async (tx) => {
        await tx.execute(sql`select 1`);
        holding += 1;
        await release.promise;
      });
    const held = [hold(), hold()];
    await waitFor(() => holding === 2, 'all connections to be in use');
    let has_begun = false;
    const codes = await Promise.all([
      codeOf(database.queries.execute(sql`insert into done values ('statement')`)),
      codeOf(
        database.transact(async (tx) => {
          has_begun = true;
          await tx.execute(sql`insert into done values ('transaction')`);
        }),
      ),
    ]);
    expect(codes).toEqual(['DATABASE_BUSY', 'DATABASE_BUSY']);
    release.resolve();
    await Promise.all(held);
    // Both connections answer again, so earlier waiters were served.
    await whenInTime(useBoth);
    expect(has_begun).toBe(false);
    expect([...(await observer.queries.execute(sql`select name from done`))]).toEqual([]);
  });

  test('a transaction that takes too long: DATABASE_BUSY, and its connection is released when it ends', async () => {
    await using database = openDatabase(address, 1, SHORT);
    const release = Promise.withResolvers<void>();
    const work = database.transact(async (tx) => {
      await tx.execute(sql`insert into done values ('late')`);
      await release.promise;
      throw new Error('given up');
    });
    expect(await codeOf(work)).toBe('DATABASE_BUSY');
    release.resolve();
    const rows = await whenInTime(() => database.queries.execute(sql`select name from done`));
    expect([...rows]).toEqual([]);
  });

  test('a server that accepts the connection and sends nothing: DATABASE_BUSY', async () => {
    using server = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data() {} } });
    const database = openDatabase({ url: `postgres://someone@127.0.0.1:${server.port}/things` }, 1, SHORT);
    expect(await codeOf(database.queries.execute(sql`select 1`))).toBe('DATABASE_BUSY');
    expect(await codeOf(database.transact((tx) => tx.execute(sql`select 1`)))).toBe('DATABASE_BUSY');
    server.stop(true);
    await database[Symbol.asyncDispose]();
  });

  const FROZEN = [
    { at: 'when it connects', text: 'idle_session_timeout' },
    { at: 'when it asks for the lock', text: 'pg_try_advisory_lock' },
  ];
  for (const { at, text } of FROZEN) {
    test(`work under a lock, if the server freezes ${at}: DATABASE_BUSY, and the work is not done`, async () => {
      await using own_proxied = await openDatabaseProxy(address);
      await using database = openDatabase({ url: own_proxied.url }, 1, { ...DEADLINES, query_ms: 3_000 });
      own_proxied.proxy.stallAfter(text);
      let is_done = false;
      const work = database.exclusively(LOCKS.first_start, async () => {
        is_done = true;
      });
      expect(await codeOf(work)).toBe('DATABASE_BUSY');
      expect(is_done).toBe(false);
    });
  }

  test('to listen, if the server freezes: DATABASE_BUSY', async () => {
    await using own_proxied = await openDatabaseProxy(address);
    await using database = openDatabase({ url: own_proxied.url }, 1, { ...DEADLINES, query_ms: 3_000 });
    own_proxied.proxy.stallAfter('listen ');
    const listening = database.listen(
      'changes',
      () => {},
      () => {},
    );
    expect(await codeOf(listening)).toBe('DATABASE_BUSY');
  });

  test('a dedicated connection whose peer is silent is replaced by another', async () => {
    await using own_proxied = await openDatabaseProxy(address);
    await using database = openDatabase({ url: own_proxied.url }, 1, { ...DEADLINES, query_ms: 3_000 });
    const connection = database.openDedicatedConnection();
    const pidOf = async () => {
      const [row] = await connection.execute<{ pid: number }>(sql`select pg_backend_pid() as pid`);
      return row?.pid;
    };
    const first = await whenInTime(pidOf);
    expect(await whenInTime(pidOf)).toBe(first);
    own_proxied.proxy.stall();
    expect(await codeOf(pidOf())).toBe('DATABASE_BUSY');
    expect(await whenInTime(pidOf)).not.toBe(first);
  });

  /** Opens a pool of some connections through a proxy, which are all in use once and then free. */
  async function openPool(connections: number) {
    await using opening = new AsyncDisposableStack();
    const { url, proxy } = opening.use(await openDatabaseProxy(address));
    const limits = { query_ms: 2_000, pool_wait_ms: 2_000, transaction_ms: 2_000 };
    const database = opening.use(openDatabase({ url }, connections, limits));
    /** Returns the processes of PostgreSQL that serve as many transactions at a time as there are connections. */
    async function useAll(): Promise<number[]> {
      const all_begun = Promise.withResolvers<void>();
      const pids: number[] = [];
      const use = () =>
        database.transact(async (tx) => {
          const [row] = await tx.execute<{ pid: number }>(sql`select pg_backend_pid() as pid`);
          if (pids.push(row?.pid ?? 0) === connections) all_begun.resolve();
          await all_begun.promise;
        });
      const used = Array.from({ length: connections }, use);
      for (const one of used) one.catch(all_begun.resolve);
      await Promise.all(used);
      return pids;
    }
    const first_pids = await whenInTime(useAll);
    const everything = opening.move();
    return { database, proxy, first_pids, useAll, [Symbol.asyncDispose]: () => everything.disposeAsync() };
  }

  test('the pool: connections whose peer is silent are replaced', async () => {
    await using pool = await openPool(4);
    const { database, proxy, first_pids, useAll } = pool;
    let has_begun = 0;
    const goes_on = Promise.withResolvers<void>();
    const begin = (last?: { text: string }) =>
      database.transact(async (tx) => {
        await tx.execute(sql`select 1`);
        has_begun += 1;
        await goes_on.promise;
        if (last) await tx.execute(sql.raw(last.text));
      });
    // One goes on with a statement, the other with its commit.
    const begun = [begin({ text: 'select 2' }), begin()].map(codeOf);
    await waitFor(() => has_begun === 2, 'two transactions to begin');
    proxy.stall();
    goes_on.resolve();
    const late = [
      ...begun,
      codeOf(database.queries.execute(sql`select 3`)),
      codeOf(database.transact((tx) => tx.execute(sql`select 4`))),
    ];
    expect(new Set(await Promise.all(late))).toEqual(new Set(['DATABASE_BUSY']));
    const pids = await whenInTime(useAll);
    expect(pids.filter((pid) => first_pids.includes(pid))).toEqual([]);
  });

  test('the connection of notifications: one whose peer is silent is replaced, and listens again', async () => {
    await using own_proxied = await openDatabaseProxy(address);
    await using database = openDatabase({ url: own_proxied.url }, 1, { ...DEADLINES, query_ms: 1_000 });
    let times_connected = 0;
    const payloads: string[] = [];
    const check = await database.listen(
      'of_a_test',
      (payload) => payloads.push(payload),
      () => {
        times_connected += 1;
      },
    );
    await check();
    own_proxied.proxy.stall();
    expect(await codeOf(check())).toBe('DATABASE_BUSY');
    await waitFor(() => times_connected === 2, 'another connection to listen');
    await database.queries.execute(sql`select pg_notify('of_a_test', 'heard')`);
    await waitFor(() => payloads.includes('heard'), 'a notification');
    await check();
  });

  test('a connection whose peer is silent before it is ready is replaced', async () => {
    await using own_proxied = await openDatabaseProxy(address);
    await using database = openDatabase({ url: own_proxied.url }, 1, { ...DEADLINES, query_ms: 3_000 });
    own_proxied.proxy.stallAfter('pg_type');
    expect(await codeOf(database.queries.execute(sql`select 1`))).toBe('DATABASE_BUSY');
    own_proxied.proxy.stallAfter('a text that is not sent');
    expect([...(await whenInTime(() => database.queries.execute(sql`select 2 as two`)))]).toEqual([{ two: 2 }]);
  });

  test('a statement that times out behind another on its connection: those after it get their own answers', async () => {
    await using database = openDatabase(address, 1, { ...DEADLINES, query_ms: 8_000 });
    await whenInTime(() => database.queries.execute(sql`select 1`));
    const behind = Array.from({ length: 20 }, () => sql`select 'late' as answer`);
    const late = [sql`select pg_sleep(60)`, ...behind].map((one) => codeOf(database.queries.execute(one)));
    // Their own limit is half of it later, in which a busy machine ends those before.
    await Bun.sleep(4_000);
    // They run long enough for a request to cancel that is meant for another.
    const next = ['first', 'second'].map((answer) =>
      database.queries.execute(sql`select ${answer} as answer from (select pg_sleep(0.3)) as slept`),
    );
    expect(new Set(await Promise.all(late))).toEqual(new Set(['DATABASE_BUSY']));
    const rows = (await Promise.all(next)).flatMap((some) => [...some]);
    expect(rows).toEqual([{ answer: 'first' }, { answer: 'second' }]);
  });

  test('transactions that give up their wait for a connection are not begun later', async () => {
    await using own_proxied = await openDatabaseProxy(address);
    await using database = openDatabase({ url: own_proxied.url }, 1, { ...DEADLINES, pool_wait_ms: 100 });
    // A begin would be sent on the first connection, and need another one.
    own_proxied.proxy.stallAfter('begin');
    const release = own_proxied.proxy.hold();
    const waiting = Array.from({ length: 3 }, () => codeOf(database.transact(async () => undefined)));
    expect(await Promise.all(waiting)).toEqual(Array.from({ length: 3 }, () => 'DATABASE_BUSY'));
    release();
    const rows = await whenInTime(() => database.queries.execute(sql`select 1 as one`));
    expect([...rows]).toEqual([{ one: 1 }]);
    expect(own_proxied.proxy.connections).toBe(1);
  });

  test('a server that accepts the connection and closes it: DATABASE_UNAVAILABLE at once, with one connection for each attempt', async () => {
    let connections = 0;
    using server = Bun.listen({
      hostname: '127.0.0.1',
      port: 0,
      socket: {
        open(socket) {
          connections += 1;
          socket.end();
        },
        data() {},
      },
    });
    await using database = openDatabase({ url: `postgres://someone@127.0.0.1:${server.port}/things` }, 1);
    expect(await codeOf(database.queries.execute(sql`select 1`))).toBe('DATABASE_UNAVAILABLE');
    expect(await codeOf(database.transact((tx) => tx.execute(sql`select 1`)))).toBe('DATABASE_UNAVAILABLE');
    expect(connections).toBe(2);
  });
});
