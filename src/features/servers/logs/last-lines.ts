import { LOG_STREAMS, type LogStream } from '../tables.ts';
import type { LogLines, Logs } from './logs.ts';

/** Reads the last `count` lines of a server, of all streams together. */
export async function readLastLines(
  logs: Pick<Logs, 'lastLines'>,
  { server_id, count }: { server_id: string; count: number },
): Promise<(LogLines['lines'][number] & { stream: LogStream })[]> {
  const streams = LOG_STREAMS.map(async (stream) => {
    const { lines } = await logs.lastLines({ server_id, stream });
    return lines.slice(-count).map((line) => ({ stream, ...line }));
  });
  return selectLastLines(await Promise.all(streams), count);
}

/**
 * Returns the last `count` lines of all streams, by time. Each stream has at least its share of them, if it has as many
 * lines: times of two streams are not exact, and one stream may have written much just before the end.
 */
export function selectLastLines<Line extends { ts: Date }>(streams: Line[][], count: number): Line[] {
  const share = Math.floor(count / streams.length);
  const shares = streams.flatMap((lines) => lines.slice(-share));
  const earlier = streams.flatMap((lines) => lines.slice(0, -share)).toSorted(byTime);
  const left = count - shares.length;
  return [...(left > 0 ? earlier.slice(-left) : []), ...shares].toSorted(byTime);
}

const byTime = (one: { ts: Date }, other: { ts: Date }) => one.ts.getTime() - other.ts.getTime();
