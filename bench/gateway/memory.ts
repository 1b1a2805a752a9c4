import { readFileSync } from 'node:fs';

/** Returns the memory of a process that is in use, in bytes. */
export function residentBytes(pid: number): number {
  const [, kibibytes = '0'] = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Number(kibibytes) * 1_024;
}
