import type { ExportedLobby } from '../lobbies/lobbies.ts';

/** Columns of a lobby history in the order of the reference API. `…_name` are name ids; times are Unix ms. */
export const HISTORY_COLUMNS = [
  'lobby_id',
  'namespace_id',
  'namespace_name',
  'region_id',
  'region_name',
  'tier_name',
  'version_id',
  'version_name',
  'lobby_group_id',
  'lobby_group_name',
  'start_ts',
  'stop_ts',
  'total_uptime_ms',
  'query_uptime_ms',
] as const;

/** A window of time in Unix milliseconds. */
export interface TimeWindow {
  start: number;
  end: number;
}

/** Returns how long a lobby ran in total and within the window. A running lobby counts up to the window's end. */
export function historyTimes(
  { create_ts, stop_ts }: Pick<ExportedLobby, 'create_ts' | 'stop_ts'>,
  { start, end }: TimeWindow,
) {
  const start_ts = create_ts.getTime();
  const stopped = stop_ts?.getTime();
  const until = stopped ?? Math.max(end, start_ts);
  return {
    start_ts,
    stop_ts: stopped ?? '',
    total_uptime_ms: until - start_ts,
    query_uptime_ms: Math.max(0, Math.min(until, end) - Math.max(start_ts, start)),
  };
}
