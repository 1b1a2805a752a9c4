import { closeSync, openSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { pace } from '../pacing.ts';
import { libc, readNames } from './libc.ts';
import { hasErrorCode } from './system-errors.ts';

/**
 * The identity of a process. Linux reuses pids, so it includes the time of the start (in clock ticks since the boot,
 * /proc/PID/stat field 22) and the boot.
 */
export interface ProcessIdentity {
  pid: number;
  start_ticks: number;
  boot_id: string;
}

/** The boot does not change while this process runs. */
export const BOOT_ID = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();

/** Returns the identity of a running process; undefined if there is none, or only a zombie. */
export function identifyProcess(pid: number): ProcessIdentity | undefined {
  const stat = readStat(pid);
  return stat && !stat.is_dead ? { pid, start_ticks: stat.start_ticks, boot_id: BOOT_ID } : undefined;
}

/** Returns whether exactly this process runs. */
export function isRunning(identity: ProcessIdentity): boolean {
  const now = identifyProcess(identity.pid);
  return now?.start_ticks === identity.start_ticks && now.boot_id === identity.boot_id;
}

/** Sends a signal, if the process still runs. */
export function signalProcess(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if (!hasErrorCode(error, 'ESRCH')) throw error;
  }
}

/** Lists the pids of all processes whose environment holds `entry` (as NAME=value), except other users' processes. */
export function findProcessesByEnvironment(entry: string): number[] {
  return listProcesses().filter((pid) => readText(`/proc/${pid}/environ`).split('\0').includes(entry));
}

export function sessionOf(pid: number): number | undefined {
  return readStat(pid)?.session;
}

/** Lists the pids of a process's children; undefined if the kernel does not provide them. */
export function readChildren(pid: number): number[] | undefined {
  try {
    return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number);
  } catch {
    return undefined;
  }
}

/**
 * Lists the open files of a process, by their paths in /proc; none if there is no such process, or it is another
 * user's.
 */
export function* listOpenFiles(pid: number): Generator<string, void> {
  const directory = `/proc/${pid}/fd`;
  let descriptors: number;
  try {
    descriptors = openSync(directory, 'r');
  } catch (error) {
    if (!isUnreadable(error)) throw error;
    return;
  }
  try {
    for (let names = readNames(descriptors); names.length > 0; names = readNames(descriptors)) {
      for (const name of names) yield `${directory}/${name}`;
    }
  } finally {
    closeSync(descriptors);
  }
}

/** Returns the target of the first open file that `isWanted` accepts; undefined if there is none. */
export async function findOpenFile(pid: number, isWanted: (path: string) => boolean): Promise<string | undefined> {
  for (const file of listOpenFiles(pid)) {
    const path = readLink(file);
    if (path !== undefined && isWanted(path)) return path;
    await pace();
  }
  return undefined;
}

/**
 * Returns the working directory of a process; undefined if there is no such process, or it is another user's: root reads
 * it only with CAP_SYS_PTRACE, which it lacks in containers.
 */
export function workingDirectoryOf(pid: number): string | undefined {
  return readLink(`/proc/${pid}/cwd`);
}

/** Returns the command line of a process, also of another user's; an empty list if there is no such process. */
export function readCommandLine(pid: number): string[] {
  return readText(`/proc/${pid}/cmdline`).split('\0').slice(0, -1);
}

/** Linux counts processor time in hundredths of a second (USER_HZ, proc(5)) on every supported machine. */
const MS_PER_TICK = 10;
/** 64 KiB on some machines with arm64. */
const PAGE_BYTES = libc.getpagesize();

/** The kernel's counters of a process. */
export interface ProcessStat {
  parent: number;
  session: number;
  start_ticks: number;
  /**
   * The program that the process runs. It changes with each start of one (execve), even of the same: it has the name and
   * the addresses of the stack and the environment, which are random. Undefined if the kernel hides these from us.
   */
  program: string | undefined;
  /** Processor time of the process itself. */
  own_ms: number;
  /** Processor time of the ended children that it waited for, and of theirs. */
  waited_ms: number;
  /** Memory that it has, with what it shares with others. */
  memory_bytes: number;
  /** Whether it has ended and its parent has not waited for it. */
  is_dead: boolean;
}

/** Reads /proc/PID/stat; undefined if there is no such process. */
export function readStat(pid: number): ProcessStat | undefined {
  const text = readText(`/proc/${pid}/stat`);
  if (text === '') return undefined;
  // The program's name is in brackets and may contain blanks and brackets itself, so it counts from the last bracket.
  const name_end = text.lastIndexOf(')');
  const fields = text.slice(name_end + 2).split(' ');
  const at = (index: number) => Number(fields[index]);
  const [stack = '0', environment = '0'] = [fields[25], fields[47]];
  return {
    parent: at(1),
    session: at(3),
    start_ticks: at(19),
    program: stack === '0' ? undefined : `${text.slice(text.indexOf('('), name_end)} ${stack} ${environment}`,
    own_ms: (at(11) + at(12)) * MS_PER_TICK,
    waited_ms: (at(13) + at(14)) * MS_PER_TICK,
    memory_bytes: at(21) * PAGE_BYTES,
    // A zombie with more than one thread is the main thread only, which ended before the others.
    is_dead: (fields[0] === 'Z' && at(17) <= 1) || fields[0] === 'X',
  };
}

interface ProcessStatus {
  /** The real and the effective user; none if there is no such process. */
  user_ids: number[];
  /** Whether it has process ids of its own, as the processes of a container have. */
  has_own_pid_namespace: boolean;
}

export function readStatus(pid: number): ProcessStatus {
  const text = readText(`/proc/${pid}/status`);
  const [, real, effective] = /^Uid:\s+(\d+)\s+(\d+)/m.exec(text) ?? [];
  const user_ids = real === undefined ? [] : [Number(real), Number(effective)];
  return { user_ids, has_own_pid_namespace: /^NSpid:\t\d+\t/m.test(text) };
}

/** Returns the real and the effective user of a process; none if there is no such process. */
export function readUserIds(pid: number): number[] {
  return readStatus(pid).user_ids;
}

/** Reads a variable of a process's initial environment; undefined if it is not set, or the process is another user's. */
export function readVariable(pid: number, name: string): string | undefined {
  const beginning = `${name}=`;
  const environment = readText(`/proc/${pid}/environ`);
  // Few processes have it, and the search for a port's holder reads all of them.
  if (!environment.includes(beginning)) return undefined;
  const entry = environment.split('\0').find((one) => one.startsWith(beginning));
  return entry?.slice(beginning.length);
}

/** Returns the hard limit of processes and threads of this process's user. */
export function readUserProcessesMax(): number {
  const [, max] = /^Max processes +\S+ +(\d+)/m.exec(readText('/proc/self/limits')) ?? [];
  return max === undefined ? Number.POSITIVE_INFINITY : Number(max);
}

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

const UNREADABLE = ['ENOENT', 'ESRCH', 'EACCES', 'EPERM'];

/** Returns whether a read failed because the process has ended, or belongs to another user. */
const isUnreadable = (error: unknown): boolean => UNREADABLE.some((code) => hasErrorCode(error, code));

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    // Without a free descriptor or memory the process may still run, so it must not count as ended.
    if (!isUnreadable(error)) throw error;
    return '';
  }
}
