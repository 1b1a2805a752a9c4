import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Events } from '../events.ts';
import { identifyProcess, isOutOfDescriptors, workingDirectoryOf } from '../processes.ts';

/** PostgreSQL's first process, as its own note says it. */
export interface Postmaster {
  pid: number;
  socket_directory: string;
}

/** How a postmaster is waited for. */
export interface Waiting {
  events: Events;
  /** Time until it says that it starts up, or that it is ready. */
  starts_within_ms: number;
  progress_every_ms: number;
}

/** The postmaster of this cluster, not a stranger that has its number now. Its file: src/include/utils/pidfile.h. */
export function findPostmaster(cluster: string): Postmaster | undefined {
  const [pid_line, , , , socket_directory = ''] = readLines(join(cluster, 'postmaster.pid'));
  const pid = Number(pid_line);
  return pid > 0 && identifyProcess(pid) && workingDirectoryOf(pid) === cluster ? { pid, socket_directory } : undefined;
}

/**
 * Waits until a postmaster takes connections, through a recovery of any length. Returns false when it ends instead, when it
 * is stopping or says nothing for too long, or when the wait is given up.
 */
export async function becomesReady(
  { cluster, log, waiting }: { cluster: string; log: string; waiting: Waiting },
  pid: number,
  signal?: AbortSignal,
): Promise<boolean> {
  const { events, starts_within_ms, progress_every_ms } = waiting;
  const begun = performance.now();
  let heard_at = begun;
  let told_at = begun;
  while (!signal?.aborted) {
    const now = performance.now();
    // The eighth line is the postmaster's own word on how it does.
    const lines = readLines(join(cluster, 'postmaster.pid'));
    const status = Number(lines[0]) === pid ? lines[7]?.trim() : undefined;
    if (status === 'ready') return true;
    // On its way to being ready, a recovery may pass "standby".
    if (status === 'starting' || status === 'standby') heard_at = now;
    if (now - heard_at > starts_within_ms || !identifyProcess(pid)) return false;
    if (now - told_at >= progress_every_ms) {
      told_at = now;
      events.emit({ event: 'database_recovering', for_ms: Math.round(now - begun), last_line: lastLine(log) });
    }
    await Bun.sleep(5);
  }
  return false;
}

export function readLines(path: string): string[] {
  try {
    return readFileSync(path, 'utf8').split('\n');
  } catch (error) {
    // A postmaster whose file cannot be opened for now is not one that has ended.
    if (isOutOfDescriptors(error)) throw error;
    return [];
  }
}

export function lastLines(path: string): string {
  return readLines(path).slice(-12).join('\n');
}

function lastLine(path: string): string {
  return readLines(path).findLast((line) => line !== '') ?? '';
}
