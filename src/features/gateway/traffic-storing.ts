import type { Database } from '../../platform/database/database.ts';
import type { Events } from '../../platform/events.ts';
import { type Loop, startLoop } from '../../platform/loop.ts';
import type { TrafficCounts } from './tables.ts';
import type { Traffic } from './traffic.ts';
import { addCounts, noTraffic } from './traffic-counts.ts';
import { addTraffic, clearOpen, selectTraffic } from './traffic-store.ts';

const EVERY_MS = 5_000;

interface TrafficStoringDependencies {
  database: Database;
  events: Events;
  traffic: Traffic;
  /** This machine. */
  node_id: string;
}

export type GatewayTraffic = ReturnType<typeof createTrafficStoring>;

/** Creates the store of servers' traffic, and the loop that adds the counts of this process to it. */
export function createTrafficStoring({ database, events, traffic, node_id }: TrafficStoringDependencies) {
  const { queries } = database;
  /** Counts that are not stored yet. */
  let waiting = new Map<string, TrafficCounts>();

  async function store(): Promise<void> {
    for (const [server_id, counts] of traffic.take()) {
      const before = waiting.get(server_id);
      waiting.set(server_id, before ? addCounts(before, counts) : counts);
    }
    if (waiting.size === 0) return;
    const stored = waiting;
    waiting = new Map();
    try {
      await addTraffic(queries, node_id, stored);
    } catch (error) {
      waiting = stored;
      throw error;
    }
  }

  return {
    store,
    /** Returns what passed between players and a server through all machines. */
    async read(server_id: string): Promise<TrafficCounts> {
      return (await selectTraffic(queries, server_id)).reduce(addCounts, noTraffic());
    },
    /**
     * Starts the loop that stores the counts. It first sets the open connections of this machine to 0, because those of
     * an earlier process have ended.
     */
    startStoring(signal: AbortSignal): Loop {
      let has_cleared = false;
      return startLoop({
        name: 'gateway-traffic',
        every_ms: EVERY_MS,
        signal,
        events,
        async step() {
          if (!has_cleared) await clearOpen(queries, node_id);
          has_cleared = true;
          await store();
          return 0;
        },
      });
    },
  };
}
