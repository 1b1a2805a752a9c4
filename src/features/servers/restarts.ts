import { after } from '../../platform/clock.ts';
import { omitUndefined } from '../../platform/omit-undefined.ts';
import { hasCrashed } from './end-description.ts';
import type { Restart } from './ends-store.ts';
import type { ServerPort, ServerRow } from './tables.ts';

/** The pause before a first restart, which doubles with each further one, and the longest pause. */
const PAUSE_FIRST_MS = 1_000;
const PAUSE_MAX_MS = 60_000;
/** A server that has run for this time is restarted as if it had not crashed before. */
const STABLE_AFTER_MS = 10 * 60_000;

/** A server and how it ended, before that is recorded. */
type End = Pick<
  ServerRow,
  | 'ports'
  | 'started_at'
  | 'destroyed_at'
  | 'kill_at'
  | 'exit_code'
  | 'exit_signal'
  | 'failure'
  | 'has_lost_machine'
  | 'restarts_max'
  | 'restart_count'
>;

/**
 * Returns the restart of a server that has ended; undefined for none. A restart follows a crash or the loss of a machine. It
 * follows no end that was requested, and none that Muster caused because the server could not start or exceeded its disk.
 */
export function planRestart(end: End, now: Date): Restart | undefined {
  const { restarts_max, destroyed_at, started_at, ports } = end;
  if (restarts_max === null || destroyed_at !== null) return undefined;
  if (!hasCrashed(end) && !end.has_lost_machine) return undefined;
  const was_stable = started_at !== null && after(started_at, STABLE_AFTER_MS) <= now;
  const restart_count = was_stable ? 1 : end.restart_count + 1;
  if (restart_count > restarts_max) return undefined;
  const pause_ms = Math.min(PAUSE_FIRST_MS * 2 ** (restart_count - 1), PAUSE_MAX_MS);
  return {
    server_id: Bun.randomUUIDv7('hex', now),
    ports: requestedPorts(ports),
    restart_count,
    start_after: after(now, pause_ms),
  };
}

/** Returns the ports of a server that a machine has taken, as they were requested. */
export function requestedPorts(ports: Record<string, ServerPort>): Record<string, ServerPort> {
  return Object.fromEntries(
    Object.entries(ports).map(([label, port]): [string, ServerPort] => {
      const { protocol, routing, wanted_port, port_range, presence } = port;
      return [
        label,
        {
          protocol,
          routing,
          ...omitUndefined({ internal_port: wanted_port, port_range, presence }),
        },
      ];
    }),
  );
}
