import type { ExportedLobby } from '../lobbies/lobbies.ts';

/** The columns of a lobby history, in the field's order (field-behaviour 8.8). `…_name` are name ids; times Unix ms. */
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

/** A stretch of time in Unix milliseconds. */
export interface Window {
  start: number;
  end: number;
}

/** How long a lobby ran in all and within the window; one that still runs counts up to the window's end. */
export function historyTimes(
  { create_ts, stop_ts }: Pick<ExportedLobby, 'create_ts' | 'stop_ts'>,
  { start, end }: Window,
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
