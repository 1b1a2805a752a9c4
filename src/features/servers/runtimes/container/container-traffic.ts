import { readFileSync } from 'node:fs';

/** The columns after the name of an interface in /proc/net/dev (proc(5)). */
const RECEIVED = 0;
const SENT = 8;

/** Returns the bytes that the network of a process has received and sent, without its loopback interface. */
export function readTraffic(pid: number): { received_bytes: number; sent_bytes: number } | undefined {
  try {
    return sumTraffic(readFileSync(`/proc/${pid}/net/dev`, 'utf8'));
  } catch {
    // The process has ended.
    return undefined;
  }
}

/** Sums the interfaces of a text in the form of /proc/net/dev. */
export function sumTraffic(text: string): { received_bytes: number; sent_bytes: number } {
  const sums = { received_bytes: 0, sent_bytes: 0 };
  for (const line of text.split('\n').slice(2)) {
    const [name = '', columns = ''] = line.split(':');
    if (name.trim() === 'lo' || columns === '') continue;
    const values = columns.trim().split(/\s+/).map(Number);
    sums.received_bytes += values[RECEIVED] ?? 0;
    sums.sent_bytes += values[SENT] ?? 0;
  }
  return sums;
}
