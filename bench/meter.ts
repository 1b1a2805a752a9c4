import { readdirSync, readFileSync } from 'node:fs';

const TICKS_PER_SECOND = 100;
const NANOSECONDS = 1e9;
const PAGE_BYTES = 4_096;
/** In the line `cpu` of /proc/stat (proc(5)): user, nice, system, then idle and iowait, then irq and softirq. */
const BUSY_FIELDS = [1, 2, 3, 6, 7];

/** The processes of one measurement. */
export interface Metered {
  server_pid: number;
  /** The first process of the server's PostgreSQL, if it has one. */
  database_pid?: number | undefined;
  /** The process that makes the requests. */
  load_pid?: number;
}

/** Seconds of processor time. */
export interface ProcessorTime {
  /** The server's main thread, which answers. */
  thread: number;
  /** The server's other threads. */
  rest: number;
  /** All processes of its PostgreSQL. */
  database: number;
  load: number;
}

/** Starts to measure. The returned function returns the processor time since then, without threads that have ended. */
export function startMeter(metered: Metered): () => ProcessorTime {
  const before = readThreads(metered);
  return () => {
    const after = readThreads(metered);
    const usedBy = (role: keyof ProcessorTime) => {
      let seconds = 0;
      for (const [thread, used] of after[role]) seconds += used - (before[role].get(thread) ?? 0);
      return seconds;
    };
    return { thread: usedBy('thread'), rest: usedBy('rest'), database: usedBy('database'), load: usedBy('load') };
  };
}

type Threads = Map<number, number>;

function readThreads({ server_pid, database_pid, load_pid }: Metered): Record<keyof ProcessorTime, Threads> {
  const rest = secondsByThread(server_pid);
  const thread: Threads = new Map([[server_pid, rest.get(server_pid) ?? 0]]);
  rest.delete(server_pid);
  const database_pids = database_pid === undefined ? [] : familyOf(database_pid);
  const database: Threads = new Map(database_pids.flatMap((pid) => [...secondsByThread(pid)]));
  return { thread, rest, database, load: load_pid === undefined ? new Map() : secondsByThread(load_pid) };
}

/** Returns the processor seconds of each thread of a process; none if it has ended. */
function secondsByThread(pid: number): Threads {
  const seconds: Threads = new Map();
  for (const thread of listDirectory(`/proc/${pid}/task`)) {
    const [nanoseconds = ''] = readText(`/proc/${pid}/task/${thread}/schedstat`).split(' ');
    if (nanoseconds !== '') seconds.set(Number(thread), Number(nanoseconds) / NANOSECONDS);
  }
  return seconds;
}

/** Returns the processor seconds of the whole machine. */
export function machineSeconds(): number {
  const [line = ''] = readFileSync('/proc/stat', 'utf8').split('\n');
  const fields = line.split(/ +/);
  return BUSY_FIELDS.reduce((sum, field) => sum + Number(fields[field]), 0) / TICKS_PER_SECOND;
}

/** Returns the processor seconds of a process with its threads; 0 if it has ended. */
export function processorSeconds(pid: number): number {
  return secondsByThread(pid)
    .values()
    .reduce((sum, seconds) => sum + seconds, 0);
}

/** Returns a process and all its running descendants. */
export function familyOf(pid: number): number[] {
  const parents = new Map<number, number>();
  for (const name of readdirSync('/proc')) if (/^\d+$/.test(name)) parents.set(Number(name), parentOf(name));
  const family = [pid];
  for (const one of family) for (const [child, parent] of parents) if (parent === one) family.push(child);
  return family;
}

/** Returns the parent: the second field of /proc/PID/stat after the name (proc(5)); NaN if the process has ended. */
function parentOf(pid: string): number {
  const stat = readText(`/proc/${pid}/stat`);
  return Number(stat.slice(stat.lastIndexOf(') ') + 2).split(' ')[1]);
}

/** Bytes of memory that a process has. */
export function residentBytes(pid: number): number {
  return Number(readFileSync(`/proc/${pid}/statm`, 'utf8').split(' ')[1]) * PAGE_BYTES;
}

/** The number of files and sockets that a process has open. */
export function openFiles(pid: number): number {
  return readdirSync(`/proc/${pid}/fd`).length;
}

/** The number of files and sockets that a process of ours may open. */
export function openFilesMax(): number {
  const line = readFileSync('/proc/self/limits', 'utf8')
    .split('\n')
    .find((one) => one.startsWith('Max open files'));
  return Number(line?.trim().split(/ {2,}/)[2] ?? 1_024) || 1_000_000;
}

/** Returns nothing of a process that has ended meanwhile. */
function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

function listDirectory(path: string): string[] {
  try {
    return readdirSync(path);
  } catch {
    return [];
  }
}
