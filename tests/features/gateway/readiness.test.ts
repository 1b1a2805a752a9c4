import { describe, expect, test } from 'bun:test';
import { startReportingReady } from '../../../src/features/gateway/readiness.ts';
import { findFreePort } from '../../support/test-ports.ts';
import { waitFor } from '../../support/wait.ts';

const LONGER_THAN_THE_TEST_MS = 600_000;
/** More than are probed at one time. */
const MANY = 200;
const NODE_ID = crypto.randomUUID();

/** A lobby on a server of this machine at a port. */
const lobbyAt = (port: number) => ({ lobby_id: crypto.randomUUID(), server_id: crypto.randomUUID(), port });

/** Reports the lobbies ready whose servers answer, until it is disposed of. */
function report(
  lobbies: ReturnType<typeof lobbyAt>[],
  probe_within_ms: number,
  beforeReady: (lobby_id: string) => Promise<void> | void = () => {},
) {
  const ready: string[] = [];
  const stop = new AbortController();
  const { stopped } = startReportingReady(
    {
      events: { emit() {} },
      subscribe: () => () => {},
      servers: {
        withPresence: async () =>
          lobbies.map(({ server_id, port }) => ({ server_id, port, node_id: NODE_ID, host: null })),
      },
      lobbies: {
        unreadyOn: async () => lobbies.filter(({ lobby_id }) => !ready.includes(lobby_id)),
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

describe('readiness', () => {
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
