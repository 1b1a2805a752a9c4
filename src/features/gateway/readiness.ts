import type { Events } from '../../platform/events.ts';
import { type Loop, startLoop } from '../../platform/loop.ts';
import type { Feed } from '../../platform/watch/feed.ts';
import type { Lobbies } from '../lobbies/lobbies.ts';
import type { Machines } from '../machines/machines.ts';
import type { Servers } from '../servers/servers.ts';
import { topics } from '../topics.ts';

/** Intervals: while a server starts, while one waits for a machine, and otherwise. */
const EVERY_MS_WHILE = { starting: 50, waiting: 250, none: 5_000 };
const PROBE_WITHIN_MS = 1_000;
const LOOPBACK = '127.0.0.1';

export interface ReadinessDependencies {
  events: Events;
  subscribe: Feed['subscribe'];
  lobbies: Pick<Lobbies, 'unreadyOn' | 'ready'>;
  servers: Pick<Servers, 'withPresence'>;
  machines: Pick<Machines, 'heldIds'>;
  node_id: string;
  datacenter_id: string;
}

/**
 * Starts the loop that reports lobbies ready whose game server does not: as soon as the server answers at a port with
 * `presence: gateway`.
 */
export function startReportingReady(dependencies: ReadinessDependencies, signal: AbortSignal): Loop {
  const { events, subscribe, lobbies, servers, machines, node_id, datacenter_id } = dependencies;
  let awaited: keyof typeof EVERY_MS_WHILE = 'none';
  const loop = startLoop({
    name: 'gateway-readiness',
    every_ms: () => EVERY_MS_WHILE[awaited],
    signal,
    events,
    async step() {
      const running = await servers.withPresence({ node_ids: machines.heldIds(), datacenter_id });
      const unready = running.length === 0 ? [] : await lobbies.unreadyOn(running.map(({ server_id }) => server_id));
      const addresses = new Map(
        running.flatMap(({ server_id, port, host, ...at_machine }) => {
          // Pods of a cluster are on other machines.
          const address = at_machine.node_id === node_id ? LOOPBACK : host;
          const url_host = address?.includes(':') ? `[${address}]` : address;
          return port && url_host ? [[server_id, `${url_host}:${port}`] as const] : [];
        }),
      );
      const is_starting = unready.some(({ server_id }) => addresses.has(server_id));
      awaited = is_starting ? 'starting' : unready.length > 0 ? 'waiting' : 'none';
      await Promise.all(
        unready.map(async ({ lobby_id, server_id }) => {
          if (await answers(addresses.get(server_id))) await lobbies.ready({ lobby_id });
        }),
      );
      return 0;
    },
  });
  const unsubscribe = subscribe(topics.work(datacenter_id), loop.wake);
  signal.addEventListener('abort', unsubscribe, { once: true });
  return loop;
}

/** Returns whether a server answers http at an address. The proxy of a container accepts any connection. */
async function answers(address: string | undefined): Promise<boolean> {
  if (address === undefined) return false;
  try {
    const probe = { method: 'HEAD', redirect: 'manual', signal: AbortSignal.timeout(PROBE_WITHIN_MS) } as const;
    await (await fetch(`http://${address}/`, probe)).body?.cancel();
    return true;
  } catch {
    return false;
  }
}
