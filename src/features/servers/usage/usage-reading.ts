import { after, type Clock } from '../../../platform/clock.ts';
import type { Database } from '../../../platform/database/database.ts';
import { ServiceError } from '../../../platform/errors.ts';
import type { AppendOnlyLog, LogPage } from '../../../platform/watch/views.ts';
import { topics } from '../../topics.ts';
import { selectServerById } from '../store.ts';
import { minuteOf, type UsageSample } from '../tables.ts';
import { selectSamples } from './usage-samples-store.ts';

export const SAMPLES_KEPT_FOR_MS = 24 * 3_600_000;

/** The latest samples of a server, and what it may use. */
export interface ServerUsage {
  samples: UsageSample[];
  /** Thousandths of a core. */
  cpu: number;
  /** MiB. */
  memory: number;
}

interface UsageKey {
  server_id: string;
}

/** Creates the watchable usage of servers: a log with an entry for each minute, numbered by the minutes since 1970. */
export function createUsageReading({
  database: { queries },
  clock,
}: {
  database: Database;
  clock: Clock;
}): AppendOnlyLog<UsageKey, ServerUsage> {
  async function readFrom({ server_id }: UsageKey, minute: number): Promise<LogPage<ServerUsage>> {
    const server = await selectServerById(queries, server_id);
    if (!server) throw new ServiceError('SERVERS_SERVER_NOT_FOUND', {});
    const first_kept = minuteOf(after(clock.now(), -SAMPLES_KEPT_FOR_MS));
    const samples = await selectSamples(queries, server_id, Math.max(minute, first_kept));
    const last = samples.at(-1);
    const { cpu, memory } = server;
    return { content: { samples, cpu, memory }, next: last ? last.minute + 1 : minute };
  }

  return {
    // The topic of the server is bumped when it is removed, even if it has no sample.
    topics: ({ server_id }) => [topics.usage(server_id), topics.server(server_id)],
    last: (key) => readFrom(key, 0),
    from: readFrom,
  };
}
