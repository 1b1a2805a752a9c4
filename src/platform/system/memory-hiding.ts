import { toArrayBuffer } from 'bun:ffi';
import { readFileSync } from 'node:fs';
import { systemCall } from '../containment/system-calls.ts';

const PR_SET_DUMPABLE = 4;
/** Fields of /proc/self/stat, counted from the one after the name: where the initial environment is in memory. */
const [ENVIRONMENT_START, ENVIRONMENT_END] = [47, 48];

/**
 * Keeps other processes of our user from reading the memory, the environment and the open files of this one, and from
 * tracing it. The kernel then writes no core dumps of it either.
 */
export function hideFromOthers(): void {
  systemCall('prctl', PR_SET_DUMPABLE, 0, 0, 0, 0);
}

/**
 * Overwrites the values of variables in the environment that this process was started with, which /proc/self/environ
 * shows as long as the process runs. Removing them from the environment that Bun keeps does not change that.
 */
export function overwriteVariables(names: readonly string[]): void {
  const stat = readFileSync('/proc/self/stat', 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const [start, end] = [Number(fields[ENVIRONMENT_START]), Number(fields[ENVIRONMENT_END])];
  if (!(start > 0 && end > start)) return;
  const memory = Buffer.from(toArrayBuffer(start as Parameters<typeof toArrayBuffer>[0], 0, end - start));
  for (let entry = 0; entry < memory.length; ) {
    const next = memory.indexOf(0, entry);
    const entry_end = next < 0 ? memory.length : next;
    const value = memory.indexOf('=', entry) + 1;
    if (value > entry && value <= entry_end && names.includes(memory.toString('utf8', entry, value - 1))) {
      memory.fill(0, value, entry_end);
    }
    entry = entry_end + 1;
  }
}
