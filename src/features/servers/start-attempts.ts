import type { Events } from '../../platform/events.ts';
import { describeStartFailure } from './start-failure.ts';
import type { Starting } from './starting.ts';
import type { PlacedServer } from './tables.ts';

/** Time before a start that failed for now is tried again, which doubles with each failure in a row, and the longest. */
const AGAIN_AFTER_MS = 2_000;
const AGAIN_AFTER_MAX_MS = 30_000;

/** A start that failed for now. */
interface FailedStart {
  /** When to try again, in the time of `performance.now()`, and the pause until then. */
  again_at: number;
  pause_ms: number;
  /** The reason in the log of the server; undefined if it could not be written. */
  reported: string | undefined;
}

/** Starts servers, and remembers which starts failed for now, so that each is tried again after a pause. */
export class StartAttempts {
  readonly #failed = new Map<string, FailedStart>();

  constructor(
    private readonly starting: Pick<Starting, 'start' | 'report'>,
    private readonly events: Events,
  ) {}

  /** Returns whether to start a server now: its start has not failed, or the pause after that is over. */
  isDue(server_id: string): boolean {
    return (this.#failed.get(server_id)?.again_at ?? 0) <= performance.now();
  }

  /**
   * Starts a server. If that fails for now, reports the reason if it is a new one, and sets when to try again. Returns
   * false if the server has ended meanwhile.
   */
  async start(server: PlacedServer): Promise<boolean> {
    const { server_id } = server;
    try {
      const is_recorded = await this.starting.start(server);
      this.#failed.delete(server_id);
      return is_recorded;
    } catch (cause) {
      await this.#postpone(server, cause);
      return true;
    }
  }

  async #postpone(server: PlacedServer, cause: unknown): Promise<void> {
    const { server_id } = server;
    const { pause_ms: last_pause_ms = AGAIN_AFTER_MS / 2, reported } = this.#failed.get(server_id) ?? {};
    const pause_ms = Math.min(2 * last_pause_ms, AGAIN_AFTER_MAX_MS);
    const failed = { again_at: performance.now() + pause_ms, pause_ms, reported };
    this.#failed.set(server_id, failed);
    const reason = describeStartFailure(cause);
    if (reason === reported) return;
    this.events.emit({ event: 'server_step_failed', server_id, step: 'start', cause });
    await this.starting.report(server, reason);
    this.#failed.set(server_id, { ...failed, reported: reason });
  }

  /** Forgets the servers that are not to be kept. */
  keepOnly(isKept: (server_id: string) => boolean): void {
    for (const server_id of this.#failed.keys()) if (!isKept(server_id)) this.#failed.delete(server_id);
  }
}
