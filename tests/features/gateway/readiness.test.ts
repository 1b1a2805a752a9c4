import { describe, expect, test } from 'bun:test';
import { eq, sql } from 'drizzle-orm';
import { startReportingReady } from '../../../src/features/gateway/readiness.ts';
import { selectUnreadyOn } from '../../../src/features/lobbies/store.ts';
import { lobbies } from '../../../src/features/lobbies/tables.ts';
import { selectWithPresence } from '../../../src/features/servers/store.ts';
import { find, makeControlledGame } from '../../support/game-server.ts';
import { SERVERS_DOMAIN, WEB_SERVER } from '../../support/gateway.ts';
import { findFreePort } from '../../support/network/test-ports.ts';
import { shareService } from '../../support/suite.ts';
import { waitFor } from '../../support/wait.ts';

const LONGER_THAN_THE_TEST_MS = 600_000;
/** More than are probed at one time. */
const MANY = 200;
const NODE_ID = crypto.randomUUID();

/** A lobby on a server of this machine at a port. */
const lobbyAt = (port: number) => ({
  lobby_id: crypto.randomUUID(),
  server_id: crypto.randomUUID(),
  port,
  node_id: NODE_ID as string | null,
});

/** Reports the lobbies ready whose servers answer, until it is disposed of. */
function report(
  unready: ReturnType<typeof lobbyAt>[],
  probe_within_ms: number,
  beforeReady: (lobby_id: string) => Promise<void> | void = () => {},
) {
  const ready: string[] = [];
  const asked_ids = new Set<string>();
  const stop = new AbortController();
  const { stopped } = startReportingReady(
    {
      events: { emit() {} },
      subscribe: () => () => {},
      servers: {
        withPresence: async () =>
          unready.map(({ server_id, port, node_id }) => ({ server_id, port, node_id, host: null })),
      },
      lobbies: {
        async unreadyOn(server_ids) {
          for (const server_id of server_ids) asked_ids.add(server_id);
          return unready.filter(({ lobby_id }) => !ready.includes(lobby_id));
        },
        async ready({ lobby_id }) {
          await beforeReady(lobby_id);
          ready.push(lobby_id);
        },
      },
      machines: { heldIds: () => [NODE_ID] },
      node_id: NODE_ID,
      datacenter_id: crypto.randomUUID(),
    },
    stop.signal,
    probe_within_ms,
  );
  return {
    ready,
    asked_ids,
    async [Symbol.asyncDispose]() {
      stop.abort();
      await stopped;
    },
  };
}

/** Listens without ever answering. */
function listenSilently() {
  let connections = 0;
  const listener = Bun.listen({
    hostname: '127.0.0.1',
    port: 0,
    socket: {
      open() {
        connections += 1;
      },
      data() {},
    },
  });
  return { port: listener.port, connections: () => connections, [Symbol.dispose]: () => listener.stop(true) };
}

/** More lobbies than were looked at, when the oldest ones hid the others. */
const COPIES = 1_100;
const tailOf = (number: number) => String(number).padStart(12, '0');
const muster = shareService({ MUSTER_SERVERS_DOMAIN: SERVERS_DOMAIN });

/** Makes a lobby at a port with presence. */
async function makeLobby(): Promise<{ server_id: string }> {
  const ports = { web: { port: 80, protocol: 'http', presence: 'gateway' } };
  const game = await makeControlledGame(muster, { source: WEB_SERVER, ports });
  const { lobby_id } = (await find(muster, game)).body.lobby;
  const [row] = await muster.database.queries.execute<{ server_id: string }>(
    sql`select server_id from lobbies where lobby_id = ${lobby_id}`,
  );
  if (!row) throw new Error('the lobby has a row');
  return row;
}

test('readiness: servers that wait for a machine, with older lobbies, hide none that runs', async () => {
  const { server_id } = await makeLobby();
  const rollback = new Error('the copies are not committed');
  const work = muster.database.transact(async (tx) => {
    const [own] = await tx.execute<{ node_id: string; datacenter_id: string }>(
      sql`select node_id, datacenter_id from servers where server_id = ${server_id}`,
    );
    if (!own) throw new Error('the server has a row');
    // A waiting server has a smaller id and an older lobby.
    const waiting_ids = Array.from({ length: COPIES }, (_, number) => `00000000-0000-7000-8000-${tailOf(number)}`);
    await tx.execute(sql`
      insert into servers select (jsonb_populate_record(servers, jsonb_build_object(
        'server_id', waiting_id, 'node_id', null))).*
      from servers cross join unnest(${sql.param(waiting_ids)}::uuid[]) as waiting_id where server_id = ${server_id}`);
    const [row] = await tx.select().from(lobbies).where(eq(lobbies.server_id, server_id));
    if (!row) throw new Error('the lobby has a row');
    const { changed_step: _, ...lobby } = row;
    const changes = { ready_ts: null, code: null, create_ts: new Date(0) };
    const copies = waiting_ids.map((id) => ({ ...lobby, ...changes, lobby_id: id, server_id: id }));
    await tx.insert(lobbies).values(copies);
    await tx.execute(sql`update lobbies set ready_ts = null where server_id = ${server_id}`);
    const { node_id, datacenter_id } = own;
    const found = await selectWithPresence(tx, { node_ids: [node_id], datacenter_id });
    const ids = found.map((one) => one.server_id);
    const unready = await selectUnreadyOn(tx, ids);
    expect([ids.length, ids[0], unready.length]).toEqual([COPIES + 1, server_id, COPIES + 1]);
    expect(unready.at(-1)).toMatchObject({ server_id });
    throw rollback;
  });
  await expect(work).rejects.toThrow(rollback.message);
}, 300_000);

describe('readiness', () => {
  test('asks only for the lobbies of servers that have an address', async () => {
    await using server = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => new Response() });
    const [lobby, waiting] = [lobbyAt(Number(server.port)), { ...lobbyAt(1), node_id: null }];
    await using reporting = report([waiting, lobby], LONGER_THAN_THE_TEST_MS);
    await waitFor(() => reporting.ready.length > 0, 'the lobby to be ready');
    expect(reporting.asked_ids).toEqual(new Set([lobby.server_id]));
  });

  test('a server that accepts connections and never answers delays no other one', async () => {
    using silent = listenSilently();
    const port = findFreePort();
    const [silent_lobby, other_lobby] = [lobbyAt(silent.port), lobbyAt(port)];
    await using reporting = report([silent_lobby, other_lobby], LONGER_THAN_THE_TEST_MS);
    // The other server starts to listen once the silent one is being probed.
    await waitFor(() => silent.connections() > 0, 'the probe of the silent server');
    await using _other = Bun.serve({ hostname: '127.0.0.1', port, fetch: () => new Response() });
    await waitFor(() => reporting.ready.length > 0, 'the other lobby to be ready');
    expect(reporting.ready).toEqual([other_lobby.lobby_id]);
    expect(silent.connections()).toBe(1);
  });

  test('a lobby whose report waits delays no other one, and one whose report fails is reported again', async () => {
    await using first = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => new Response() });
    const port = findFreePort();
    const [slow, other] = [lobbyAt(Number(first.port)), lobbyAt(port)];
    const [asked, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    let failures = 0;
    await using reporting = report([slow, other], LONGER_THAN_THE_TEST_MS, async (lobby_id) => {
      asked.resolve();
      if (lobby_id === slow.lobby_id) return await released.promise;
      failures += 1;
      if (failures === 1) throw new Error('refused once');
    });
    await asked.promise;
    await using _second = Bun.serve({ hostname: '127.0.0.1', port, fetch: () => new Response() });
    await waitFor(() => reporting.ready.length > 0, 'the other lobby to be ready');
    expect(reporting.ready).toEqual([other.lobby_id]);
    released.resolve();
    await waitFor(() => reporting.ready.length > 1, 'the first lobby to be ready');
  });

  test('of many silent servers, those whose last probe is the oldest are probed first', async () => {
    using silent = listenSilently();
    await using other = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => new Response() });
    const other_lobby = lobbyAt(Number(other.port));
    await using reporting = report([...Array.from({ length: MANY }, () => lobbyAt(silent.port)), other_lobby], 100);
    await waitFor(() => reporting.ready.length > 0, 'the other lobby to be ready');
    expect(reporting.ready).toEqual([other_lobby.lobby_id]);
  });
});
