import { LRUCache } from 'lru-cache';
import type { Feed } from '../../platform/watch/feed.ts';
import type { ServerReach, Servers } from '../servers/servers.ts';
import { topics } from '../topics.ts';

/** Servers whose addresses are remembered. */
const RUNNING_MAX = 10_000;
/** Other servers that are remembered. They have a cache of their own, so that a flood of names displaces no running one. */
const OTHERS_MAX = 1_000;
/** How long a server that does not run is remembered, by its state. That it becomes ready is not always announced. */
const OTHERS_KEPT_MS = { not_ready: 250, ended: 10_000, unknown: 10_000 };

interface ReachableServersDependencies {
  servers: Pick<Servers, 'reach'>;
  subscribe: Feed['subscribe'];
}

interface Entry {
  /** Undefined if there is no such server. */
  server: ServerReach | undefined;
  unsubscribe(): void;
}

/**
 * Creates the lookup of servers by id. A server that runs is remembered until it changes, so that requests to it need no
 * query; any other state for a short time, so that a flood of requests needs few.
 */
export function createReachableServers({ servers, subscribe }: ReachableServersDependencies) {
  const dispose = ({ unsubscribe }: Entry) => unsubscribe();
  const running = new LRUCache<string, Entry>({ max: RUNNING_MAX, dispose });
  const others = new LRUCache<string, Entry>({ max: OTHERS_MAX, ttl: OTHERS_KEPT_MS.unknown, dispose });

  function forget(server_id: string, entry: Entry): void {
    for (const cache of [running, others]) if (cache.peek(server_id) === entry) cache.delete(server_id);
  }

  async function read(server_id: string): Promise<ServerReach | undefined> {
    let has_changed = false;
    // Subscribes before it reads, so that no change in between is missed.
    const unsubscribe = subscribe(topics.server(server_id), () => {
      has_changed = true;
      forget(server_id, entry);
    });
    const entry: Entry = { server: undefined, unsubscribe };
    try {
      entry.server = await servers.reach(server_id);
    } catch (error) {
      unsubscribe();
      throw error;
    }
    const { server } = entry;
    if (has_changed) unsubscribe();
    else if (server?.is === 'running') running.set(server_id, entry);
    else others.set(server_id, entry, { ttl: OTHERS_KEPT_MS[server?.is ?? 'unknown'] });
    return server;
  }

  return {
    /** Returns what is remembered of a server; undefined if nothing is. */
    recall: (server_id: string): Pick<Entry, 'server'> | undefined => running.get(server_id) ?? others.get(server_id),
    /** Reads the state of a server from the database; undefined if there is none. */
    read,
    [Symbol.dispose]: (): void => {
      running.clear();
      others.clear();
    },
  };
}
