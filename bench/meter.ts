import { readdirSync, readFileSync } from 'node:fs';

const TICKS_PER_SECOND = 100;
const PAGE_BYTES = 4_096;
/** In the line `cpu` of /proc/stat (proc(5)): user, nice, system, then idle and iowait, then irq and softirq. */
const BUSY_FIELDS = [1, 2, 3, 6, 7];

/** Seconds of processor time that a process has used, its threads included; 0 when it has ended. */
export function processorSeconds(pid: number): number {
  const fields = fieldsOf(pid);
  return (Number(fields[11] ?? 0) + Number(fields[12] ?? 0)) / TICKS_PER_SECOND;
}

/** The same for everything that runs on the machine. */
export function machineSeconds(): number {
  const [line = ''] = readFileSync('/proc/stat', 'utf8').split('\n');
  const fields = line.split(/ +/);
  return BUSY_FIELDS.reduce((sum, field) => sum + Number(fields[field]), 0) / TICKS_PER_SECOND;
}

/** A process and those that it has started, as far as they live. */
export function familyOf(pid: number): number[] {
  const parents = new Map<number, number>();
  for (const name of readdirSync('/proc')) {
    if (/^\d+$/.test(name)) parents.set(Number(name), Number(fieldsOf(Number(name))[1]));
  }
  const family = [pid];
  for (const one of family) for (const [child, parent] of parents) if (parent === one) family.push(child);
  return family;
}

/** Bytes of memory that a process has. */
export function residentBytes(pid: number): number {
  return Number(readFileSync(`/proc/${pid}/statm`, 'utf8').split(' ')[1]) * PAGE_BYTES;
}

/** How many files and sockets a process has open. */
export function openFiles(pid: number): number {
  return readdirSync(`/proc/${pid}/fd`).length;
}

/** How many files and sockets a process of ours may open. */
export function openFilesMax(): number {
  const line = readFileSync('/proc/self/limits', 'utf8')
    .split('\n')
    .find((one) => one.startsWith('Max open files'));
  return Number(line?.trim().split(/ {2,}/)[2] ?? 1_024) || 1_000_000;
}

/** What stands in /proc/PID/stat after the name (proc(5)): the first is the state. Nothing, when it has ended. */
function fieldsOf(pid: number): string[] {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return stat.slice(stat.lastIndexOf(') ') + 2).split(' ');
  } catch {
    return [];
  }
}
