import type { DialectName } from './dialects.ts';

/** Watchers of one kind. */
export interface Group {
  count: number;
  path: string;
  /** Lines of the request, each with its end. */
  headers: string;
  /** The first frame of the client. */
  greeting?: string;
}

/** An order for a process that makes load. */
export type LoadOrder =
  | { order: 'listen'; port: number; dialect: DialectName; groups: Group[] }
  | { order: 'poll'; port: number; groups: Group[] }
  | { order: 'count' };

/** A report of such a process. */
export type LoadReport =
  | { is_there: true }
  | { opened: number }
  | { bodies: number }
  /** The last watcher has seen this number, at a moment of `now`. */
  | { reached: number; at: number };

/** Milliseconds since 1970, with fractions: the same in all processes of a machine. */
export function now(): number {
  return performance.timeOrigin + performance.now();
}
