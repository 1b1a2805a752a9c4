import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { Events } from '../events.ts';
import { identifyProcess, readCommandLine, readUserIds, workingDirectoryOf } from '../system/processes.ts';
import { isOutOfDescriptors } from '../system/system-errors.ts';

/** PostgreSQL's first process, as its pid file describes it. */
export interface Postmaster {
  pid: number;
  socket_directory: string;
}

/** The limits of a start, and where it reports a long one. */
export interface StartLimits {
  events: Events;
  /** Time until the postmaster reports that it starts or is ready. */
  starts_within_ms: number;
  progress_every_ms: number;
}

/** Reads the pid file (src/include/utils/pidfile.h). Undefined if another process has the pid by now. */
export function findPostmaster(cluster: string): Postmaster | undefined {
  const [pid_line, , , , socket_directory = ''] = readLines(join(cluster, 'postmaster.pid'));
  const pid = Number(pid_line);
  return pid > 0 && identifyProcess(pid) && isPostmasterOf(pid, cluster) ? { pid, socket_directory } : undefined;
}

function isPostmasterOf(pid: number, cluster: string): boolean {
  const directory = workingDirectoryOf(pid);
  if (directory !== undefined) return directory === cluster;
  // Any program could have this command line, but not as the user of PostgreSQL.
  const command = readCommandLine(pid);
  const is_for_cluster = command[command.indexOf('-D') + 1] === cluster;
  return is_for_cluster && readUserIds(pid).includes(statSync(cluster).uid);
}

/**
 * Waits until a postmaster accepts connections, through a recovery of any length. Returns false if it ends or stops
 * instead, reports nothing for too long, or the signal is aborted.
 */
export async function waitUntilPostmasterReady(
  { cluster, log, start_limits }: { cluster: string; log: string; start_limits: StartLimits },
  pid: number,
  signal?: AbortSignal,
): Promise<boolean> {
  const { events, starts_within_ms, progress_every_ms } = start_limits;
  const begun = performance.now();
  let progress_at = begun;
  let reported_at = begun;
  while (!signal?.aborted) {
    const now = performance.now();
    // The eighth line is the postmaster's status.
    const lines = readLines(join(cluster, 'postmaster.pid'));
    const status = Number(lines[0]) === pid ? lines[7]?.trim() : undefined;
    if (status === 'ready') return true;
    // A recovery may report "standby" before "ready".
    if (status === 'starting' || status === 'standby') progress_at = now;
    if (now - progress_at > starts_within_ms || !identifyProcess(pid)) return false;
    if (now - reported_at >= progress_every_ms) {
      reported_at = now;
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
    // Without a free descriptor the file cannot be read, which does not mean that the postmaster has ended.
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
