import type { Events } from '../../platform/events.ts';
import { type Loop, startLoop } from '../../platform/loop.ts';
import { type Feed, wakeOnChange } from '../../platform/watch/feed.ts';
import type { Lobbies } from '../lobbies/lobbies.ts';
import { topics } from '../topics.ts';
import type { PassedSockets } from './passed-sockets.ts';
import type { Presence } from './presence.ts';

const RECHECK_EVERY_MS = 5_000;
/** Connections that one query asks for. */
const CONNECTIONS_READ_MAX = 1_000;

export interface ConnectionCheckDependencies {
  events: Events;
  subscribe: Feed['subscribe'];
  lobbies: Pick<Lobbies, 'kickedAmong'>;
  presence: Pick<Presence, 'overAmong'>;
  /** This machine. */
  node_id: string;
}

/**
 * Starts the loop that closes the connections of players who were kicked, or who have connected again through another
 * machine, and those that other machines gave up.
 */
export function startCheckingConnections(
  { events, subscribe, lobbies, presence, node_id }: ConnectionCheckDependencies,
  sockets: Pick<PassedSockets, 'connections' | 'stop'>,
  signal: AbortSignal,
): Loop {
  const loop = startLoop({
    name: 'gateway-checks',
    every_ms: RECHECK_EVERY_MS,
    signal,
    events,
    async step() {
      const connections = sockets.connections();
      let closed = 0;
      for (let first = 0; first < connections.length; first += CONNECTIONS_READ_MAX) {
        const some = connections.slice(first, first + CONNECTIONS_READ_MAX);
        const kicked = new Set(await lobbies.kickedAmong(some.map(({ player_id }) => player_id)));
        const over = await presence.overAmong(some);
        for (const connection of some) {
          const reason = kicked.has(connection.player_id) ? 'kicked' : over.get(connection);
          if (!reason) continue;
          sockets.stop(connection, reason);
          closed += 1;
        }
      }
      return closed;
    },
  });
  wakeOnChange(loop, { feed: { subscribe }, topics: [topics.kicks(), topics.replacedOf(node_id)], signal });
  return loop;
}
