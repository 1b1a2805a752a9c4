import type { Events } from '../../platform/events.ts';
import { type Loop, startLoop } from '../../platform/loop.ts';
import { MIB } from '../../platform/units.ts';
import { createForcedEnds, type ForcedEndDependencies } from './forced-ends.ts';
import { handleOf } from './rules.ts';
import { isAbove } from './runtimes/disk-use.ts';
import type { DiskUse, Runtime } from './runtimes/runtime.ts';
import type { PlacedServer } from './tables.ts';

const EVERY_MS = 5_000;
/** The largest share of time that is spent on measuring, unless passes would be more than half a minute apart. */
const SHARE_MAX = 1 / 50;
const EVERY_MAX_MS = 30_000;
/**
 * Servers that are measured together, with one scan of all processes. Those above the limit are ended before the next
 * ones are measured.
 */
const AT_ONCE_MAX = 50;

interface DiskLimitDependencies extends ForcedEndDependencies {
  events: Events;
  measureDisk: NonNullable<Runtime['measureDisk']>;
  /** The most that a server may have on the disk. */
  disk_max: DiskUse;
  /** Returns this machine's servers. */
  listServers(): readonly PlacedServer[];
}

/** Starts the loop that ends servers of this machine that have more on the disk than they may. */
export function startLimitingDisk(dependencies: DiskLimitDependencies, signal: AbortSignal): Loop {
  const { events, measureDisk, disk_max, listServers } = dependencies;
  const forceEnd = createForcedEnds(dependencies);
  let took_ms = 0;

  async function endExcessive(servers: readonly PlacedServer[]): Promise<void> {
    const measured = await measureDisk(servers.map(handleOf), disk_max);
    for (const server of servers) {
      const used = measured.get(server.server_id);
      if (used && isAbove(used, disk_max)) await forceEnd(server, describeExcess(used, disk_max));
    }
  }

  return startLoop({
    name: 'disk-limit',
    every_ms: () => Math.min(EVERY_MAX_MS, Math.max(EVERY_MS, took_ms / SHARE_MAX)),
    signal,
    events,
    async step() {
      const started = performance.now();
      // A server that has failed is ending for another reason already.
      const running = listServers().filter(({ identity, failure }) => identity !== null && failure === null);
      for (let start = 0; start < running.length; start += AT_ONCE_MAX) {
        await endExcessive(running.slice(start, start + AT_ONCE_MAX));
      }
      took_ms = performance.now() - started;
      return 0;
    },
  });
}

const UNCOUNTABLE =
  'its files cannot be counted: it has folders more than 256 deep, more than 65,536 open files or too many memory-mapped files, or its container engine takes more than 30 s to count them';

function describeExcess(used: DiskUse, disk_max: DiskUse): string {
  if (used.is_uncountable) return UNCOUNTABLE;
  return used.bytes > disk_max.bytes
    ? `it exceeded its ${disk_max.bytes / MIB} MiB of disk`
    : `it exceeded its ${disk_max.files} files`;
}
