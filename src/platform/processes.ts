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
export const BOOT_ID = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();

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

/** The number of the session that a process belongs to: that of its first process. */
export function sessionOf(pid: number): number | undefined {
  return readStat(pid)?.session;
}

/** The numbers of a process's children; undefined where the kernel does not tell. */
export function readChildren(pid: number): number[] | undefined {
  try {
    return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number);
  } catch {
    return undefined;
  }
}

/** The paths of the files that a process has open; none when there is no such process. */
export function readOpenFiles(pid: number): string[] {
  try {
    return readdirSync(`/proc/${pid}/fd`).flatMap((file) => readLink(`/proc/${pid}/fd/${file}`) ?? []);
  } catch {
    return [];
  }
}

/** The directory a process stands in; undefined when there is no such process. */
export function workingDirectoryOf(pid: number): string | undefined {
  return readLink(`/proc/${pid}/cwd`);
}

export function isErrno(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code;
}

/** Whether a file could not be opened because this process, or the machine, has no descriptor left. */
export function isOutOfDescriptors(error: unknown): boolean {
  return isErrno(error, 'EMFILE') || isErrno(error, 'ENFILE');
}

/** Linux counts processor time in hundredths of a second (USER_HZ, proc(5)) on every machine we run on. */
const MS_PER_TICK = 10;

/** What the kernel counts of a process. */
export interface ProcessStat {
  parent: number;
  session: number;
  start_ticks: number;
  /** Processor time that it used itself. */
  own_ms: number;
  /** Processor time of its children that ended and that it waited for, and of theirs. */
  waited_ms: number;
  /** Ended, and not yet collected by its parent. */
  is_dead: boolean;
}

/** Reads /proc/PID/stat; undefined when there is no such process. */
export function readStat(pid: number): ProcessStat | undefined {
  const text = readText(`/proc/${pid}/stat`);
  if (text === '') return undefined;
  // The program's name stands in brackets and may hold anything, blanks and brackets too: count from the last one.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  const at = (index: number) => Number(fields[index]);
  return {
    parent: at(1),
    session: at(3),
    start_ticks: at(19),
    own_ms: (at(11) + at(12)) * MS_PER_TICK,
    waited_ms: (at(13) + at(14)) * MS_PER_TICK,
    is_dead: fields[0] === 'Z' || fields[0] === 'X',
  };
}

/** The users that a process runs as, the real one and the effective one; none when there is no such process. */
export function readUserIds(pid: number): number[] {
  const [, real, effective] = /^Uid:\s+(\d+)\s+(\d+)/m.exec(readText(`/proc/${pid}/status`)) ?? [];
  return real === undefined ? [] : [Number(real), Number(effective)];
}

/** A variable in the environment that a process was started with; undefined when it has none, or is another user's. */
export function readVariable(pid: number, name: string): string | undefined {
  const beginning = `${name}=`;
  const entry = readText(`/proc/${pid}/environ`)
    .split('\0')
    .find((one) => one.startsWith(beginning));
  return entry?.slice(beginning.length);
}

/** The numbers of all processes. */
export function listProcesses(): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number);
}

function readLink(path: string): string | undefined {
  try {
    return readlinkSync(path);
  } catch {
    return undefined;
  }
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    // Without a free descriptor nothing can be known: a process that runs must not be taken for one that has ended.
    if (isOutOfDescriptors(error)) throw error;
    return '';
  }
}
