import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

/**
 * A process that cannot be mistaken for a later one of the same number: Linux gives numbers again, so the moment it
 * started (in clock ticks since the boot, /proc/PID/stat field 22) and the boot itself belong to its name.
 */
export interface ProcessIdentity {
  pid: number;
  start_ticks: number;
  boot_id: string;
}

/** It does not change as long as we run. */
const BOOT_ID = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();

/** The identity of a running process; undefined when there is none, or only what is left of it (a zombie). */
export function identifyProcess(pid: number): ProcessIdentity | undefined {
  const stat = readStat(pid);
  return stat && !stat.is_dead ? { pid, start_ticks: stat.start_ticks, boot_id: BOOT_ID } : undefined;
}

/** Whether exactly this process runs. */
export function isRunning(identity: ProcessIdentity): boolean {
  const now = identifyProcess(identity.pid);
  return now?.start_ticks === identity.start_ticks && now.boot_id === identity.boot_id;
}

/** Sends a signal; a process that is gone is none to complain about. */
export function signalProcess(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if (!isErrno(error, 'ESRCH')) throw error;
  }
}

/** The numbers of all processes whose environment holds `entry` (as NAME=value); those of other users are not seen. */
export function findProcessesByEnvironment(entry: string): number[] {
  return listProcesses().filter((pid) => readText(`/proc/${pid}/environ`).split('\0').includes(entry));
}

/** The numbers of all processes of a user. */
export function findProcessesByUser(uid: number): number[] {
  const line = new RegExp(`^Uid:\\s+\\d+\\s+${uid}\\s`, 'm');
  return listProcesses().filter((pid) => line.test(readText(`/proc/${pid}/status`)) && identifyProcess(pid));
}

/** The number of the session that a process belongs to: that of its first process. */
export function sessionOf(pid: number): number | undefined {
  return readStat(pid)?.session;
}

/** The directory a process stands in; undefined when there is no such process. */
export function workingDirectoryOf(pid: number): string | undefined {
  try {
    return readlinkSync(`/proc/${pid}/cwd`);
  } catch {
    return undefined;
  }
}

/** Linux counts processor time in hundredths of a second (USER_HZ, proc(5)) on every machine we run on. */
const MS_PER_TICK = 10;

/**
 * Processor time used so far, in milliseconds, by the processes of each session, with those of their children that have
 * ended and were waited for.
 */
export function cpuTimeBySession(): Map<number, number> {
  const by_session = new Map<number, number>();
  for (const pid of listProcesses()) {
    const stat = readStat(pid);
    if (stat) by_session.set(stat.session, (by_session.get(stat.session) ?? 0) + stat.cpu_ticks * MS_PER_TICK);
  }
  return by_session;
}

export function isErrno(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code;
}

interface ProcessStat {
  session: number;
  start_ticks: number;
  cpu_ticks: number;
  is_dead: boolean;
}

function readStat(pid: number): ProcessStat | undefined {
  const text = readText(`/proc/${pid}/stat`);
  // The program's name stands in brackets and may hold anything, blanks and brackets too: count from the last one.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  const [state, session, start_ticks] = [fields[0], Number(fields[3]), Number(fields[19])];
  // Its own time in user and system mode, and that of the children it waited for.
  const cpu_ticks = fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks), 0);
  return text === '' ? undefined : { session, start_ticks, cpu_ticks, is_dead: state === 'Z' || state === 'X' };
}

function listProcesses(): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number);
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}
