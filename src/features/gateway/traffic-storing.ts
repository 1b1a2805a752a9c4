import type { Database } from '../../platform/database/database.ts';
import type { Events } from '../../platform/events.ts';
import { type Loop, startLoop } from '../../platform/loop.ts';
import { shareRuns } from '../../platform/runs.ts';
import type { TrafficCounts } from './tables.ts';
import type { Traffic } from './traffic.ts';
import { addCounts, noTraffic } from './traffic-counts.ts';
import { addTraffic, type Batch, beginBatches, clearOpen, randomStart, selectTraffic } from './traffic-store.ts';

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
  const start = randomStart();
  /** The number of the last batch that was stored; undefined until this process has begun to store. */
  let last_number: number | undefined;
  /** The batch of which it is not known that it was stored. It is repeated as it is, because it may have been. */
  let unstored: Batch | undefined;

  async function storeAll(): Promise<void> {
    last_number ??= await begin();
    if (unstored) await storeBatch(unstored);
    const counted = traffic.take();
    if (counted.size > 0) await storeBatch({ number: last_number + 1, counted });
  }

  /** Begins to store. The open connections of an earlier process have ended. */
  async function begin(): Promise<number> {
    await beginBatches(queries, node_id, start);
    await clearOpen(queries, node_id);
    return start;
  }

  async function storeBatch(batch: Batch): Promise<void> {
    unstored = batch;
    await addTraffic(queries, node_id, batch);
    last_number = batch.number;
    unstored = undefined;
  }

  const store = shareRuns(storeAll);
  return {
    /** Stores all counts. */
    store,
    /** Returns what passed between players and a server through all machines. */
    async read(server_id: string): Promise<TrafficCounts> {
      return (await selectTraffic(queries, server_id)).reduce(addCounts, noTraffic());
    },
    /** Starts the loop that stores the counts. */
    startStoring(signal: AbortSignal): Loop {
      return startLoop({
        name: 'gateway-traffic',
        every_ms: EVERY_MS,
        signal,
        events,
        async step() {
          await store();
          return 0;
        },
      });
    },
  };
}
