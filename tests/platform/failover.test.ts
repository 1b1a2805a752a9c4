import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { sql } from 'drizzle-orm';
import { checkDatabase } from '../../src/platform/database/check.ts';
import { openDatabase } from '../../src/platform/database/database.ts';
import { query } from '../support/database/embedded.ts';
import { outcomeOfWrite } from '../support/database/read-only.ts';
import { openReplicated, type ReplicatedPostgres } from '../support/machines/standby.ts';
import { openTcpProxy } from '../support/network/tcp-proxy.ts';
import { waitFor } from '../support/wait.ts';

const REPLACED_WITHIN_MS = 20_000;
const POOL = 3;

describe('failover: a database with a standby', () => {
  let servers: ReplicatedPostgres;
  beforeAll(async () => {
    servers = await openReplicated('create table notes (note text)');
  }, 300_000);
  afterAll(async () => {
    await servers[Symbol.asyncDispose]();
  }, 300_000);

  /** Opens all connections that Muster has to a database, through a proxy that leads to the primary. */
  async function openEverything() {
    await using opened = new AsyncDisposableStack();
    const proxy = opened.use(await openTcpProxy(servers.primary));
    const { user, database: name } = servers.primary;
    const database = opened.use(openDatabase({ url: `postgres://${user}@127.0.0.1:${proxy.port}/${name}` }, POOL));
    const dedicated = database.openDedicatedConnection();
    const received: string[] = [];
    await database.listen(
      'notes_changed',
      (payload) => received.push(payload),
      () => {},
    );
    /** Returns the outcome of a write on each connection. */
    const write = () =>
      Promise.all([outcomeOfWrite(dedicated), ...Array.from({ length: POOL }, () => outcomeOfWrite(database.queries))]);
    const everything = opened.move();
    return { proxy, database, received, write, [Symbol.asyncDispose]: () => everything.disposeAsync() };
  }

  const isRefused = (outcomes: string[]) => outcomes.every((outcome) => outcome === 'DATABASE_UNAVAILABLE');
  const isWritten = (outcomes: string[]) => outcomes.every((outcome) => outcome === 'written');

  test('the address leads to the standby for a moment: every connection returns to the primary', async () => {
    await using muster = await openEverything();
    const { proxy, database, received, write } = muster;
    expect(isWritten(await write())).toBe(true);
    await proxy.redirectTo(servers.standby);
    await waitFor(async () => isRefused(await write()), 'writes to be refused');
    expect((await checkDatabase(database))?.code).toBe('DATABASE_STANDBY');
    // Connections to the standby stay open, so only their users can find out that the address leads elsewhere now.
    proxy.redirectNewTo(servers.primary);
    await waitFor(async () => isWritten(await write()), 'writes on every connection', REPLACED_WITHIN_MS);
    expect(await checkDatabase(database)).toBeUndefined();
    await waitFor(
      async () => {
        await query({ connection: servers.primary }, `select pg_notify('notes_changed', 'hello')`);
        return received.length > 0;
      },
      'a notification from the primary',
      REPLACED_WITHIN_MS,
    );
  }, 300_000);

  test('the standby takes over: writes and notifications go to it', async () => {
    await using muster = await openEverything();
    const { proxy, database, received, write } = muster;
    expect(isWritten(await write())).toBe(true);
    await proxy.redirectTo(servers.standby);
    await waitFor(async () => isRefused(await write()), 'writes to be refused');
    await servers.promote();
    await waitFor(async () => isWritten(await write()), 'writes on every connection', REPLACED_WITHIN_MS);
    await waitFor(async () => (await checkDatabase(database)) === undefined, 'the database to be healthy');
    await waitFor(
      async () => {
        await database.queries.execute(sql`select pg_notify('notes_changed', 'hello')`);
        return received.length > 0;
      },
      'a notification from the promoted server',
      REPLACED_WITHIN_MS,
    );
  }, 300_000);
});
