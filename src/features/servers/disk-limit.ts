import type { Loop } from '../../platform/loop.ts';
import { MIB } from '../../platform/units.ts';
import { type EnforcingDependencies, type ForceEnd, startEnforcing } from './forced-ends.ts';
import { handleOf } from './rules.ts';
import { DEPTH_MAX, isAbove, OPEN_FILES_MAX } from './runtimes/disk-use.ts';
import { DISK_TIMEOUT_MS } from './runtimes/engine/engine-containers.ts';
import type { DiskUse, Runtime } from './runtimes/runtime.ts';
import type { PlacedServer } from './tables.ts';

const EVERY_MS = 5_000;
const EVERY_MAX_MS = 30_000;
/**
 * Servers that are measured together, with one scan of all processes. Those above the limit are ended before the next
 * ones are measured.
 */
const AT_ONCE_MAX = 50;

interface DiskLimitDependencies extends EnforcingDependencies {
  measureDisk: NonNullable<Runtime['measureDisk']>;
  /** The most that a server may have on the disk. */
  disk_max: DiskUse;
}

/** Starts the loop that ends servers of this machine that have more on the disk than they may. */
export function startLimitingDisk(dependencies: DiskLimitDependencies, signal: AbortSignal): Loop {
  const { measureDisk, disk_max } = dependencies;

  async function endExcessive(servers: readonly PlacedServer[], forceEnd: ForceEnd): Promise<void> {
    for (let start = 0; start < servers.length; start += AT_ONCE_MAX) {
      const some = servers.slice(start, start + AT_ONCE_MAX);
      const measured = await measureDisk(some.map(handleOf), disk_max);
      for (const server of some) {
        const used = measured.get(server.server_id);
        if (used && isAbove(used, disk_max)) await forceEnd(server, describeExcess(used, disk_max));
      }
    }
  }

  const rule = { every_ms: EVERY_MS, every_max_ms: EVERY_MAX_MS, enforce: endExcessive };
  return startEnforcing(dependencies, { name: 'disk-limit', ...rule }, signal);
}

const UNCOUNTABLE = `its files cannot be counted: it has folders more than ${DEPTH_MAX} deep, more than ${OPEN_FILES_MAX.toLocaleString('en')} open files or too many memory-mapped files, or its container engine takes more than ${DISK_TIMEOUT_MS / 1_000} s to count them`;

function describeExcess(used: DiskUse, disk_max: DiskUse): string {
  if (used.is_uncountable) return UNCOUNTABLE;
  return used.bytes > disk_max.bytes
    ? `it exceeded its ${disk_max.bytes / MIB} MiB of disk`
    : `it exceeded its ${disk_max.files} files`;
}
