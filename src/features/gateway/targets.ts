import { LRUCache } from 'lru-cache';
import type { Feed } from '../../platform/watch/feed.ts';
import type { ReachableServer, Servers } from '../servers/servers.ts';
import { topics } from '../topics.ts';

/** Servers whose addresses are remembered. */
const SERVERS_MAX = 10_000;

interface TargetsDependencies {
  servers: Pick<Servers, 'reach'>;
  subscribe: Feed['subscribe'];
}

interface Entry {
  server: ReachableServer | undefined;
  unsubscribe(): void;
}

export type Targets = ReturnType<typeof createTargets>;

/**
 * Creates the lookup of servers by id. A server that runs is remembered until it changes, so that requests to it need no
 * query; every other state is read again, because it may end at any moment.
 */
export function createTargets({ servers, subscribe }: TargetsDependencies) {
  const entries = new LRUCache<string, Entry>({ max: SERVERS_MAX, dispose: ({ unsubscribe }) => unsubscribe() });

  async function read(server_id: string): Promise<ReachableServer | undefined> {
    let has_changed = false;
    // Subscribes before it reads, so that no change in between is missed.
    const unsubscribe = subscribe(topics.server(server_id), () => {
      has_changed = true;
      if (entries.peek(server_id) === entry) entries.delete(server_id);
    });
    const entry: Entry = { server: undefined, unsubscribe };
    try {
      entry.server = await servers.reach(server_id);
    } catch (error) {
      unsubscribe();
      throw error;
    }
    if (entry.server?.is === 'running' && !has_changed) entries.set(server_id, entry);
    else unsubscribe();
    return entry.server;
  }

  return {
    /** Returns the state of a server that is remembered. */
    recall: (server_id: string): ReachableServer | undefined => entries.get(server_id)?.server,
    /** Reads the state of a server from the database; undefined if there is none. */
    read,
    /** Forgets the address of a server, after it did not answer. */
    forget: (server_id: string): void => void entries.delete(server_id),
    [Symbol.dispose]: (): void => entries.clear(),
  };
}
