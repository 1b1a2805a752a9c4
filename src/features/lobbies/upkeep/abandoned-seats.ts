import type { Clock } from '../../../platform/clock.ts';
import type { Database } from '../../../platform/database/database.ts';
import { isLocked, isUnavailable } from '../../../platform/database/failures.ts';
import { isAmong, removePlayers } from '../players-store.ts';
import { type SeatKey, selectCommittedSeats } from './abandoned-seats-store.ts';

/** Maximum number of remembered seats. The oldest are dropped; they end by the seat timeout. */
const SEATS_MAX = 20_000;
/**
 * How long seats are looked for after the database answers again. A PostgreSQL that was frozen runs the statements that it
 * had received, and may need as long for one as it is allowed to.
 */
const LOOK_FOR_MS = 30_000;
/** How long the release waits for the locked lobbies of one namespace. The other namespaces wait meanwhile. */
const LOCK_WAIT_MAX_MS = 500;

export type AbandonedSeats = ReturnType<typeof createAbandonedSeats>;

/**
 * Remembers the seats of requests that were answered with an error although PostgreSQL has committed them, or may still do
 * so: the answer to the commit was lost, or the seats could not be released. The `lobbies` loop releases them.
 */
export function createAbandonedSeats({ database, clock }: { database: Database; clock: Clock }) {
  /** The abandoned seats by player, each with the moment at which the database was first asked for it. */
  const abandoned = new Map<string, SeatKey & { first_asked_at?: number }>();

  function add(seats: SeatKey[]): void {
    for (const { namespace_id, player_id } of seats) abandoned.set(player_id, { namespace_id, player_id });
    for (const player_id of abandoned.keys()) {
      if (abandoned.size <= SEATS_MAX) break;
      abandoned.delete(player_id);
    }
  }

  return {
    /** Remembers seats that could not be released. */
    add,
    /** Remembers the seats of a failed commit, unless the failure shows that nothing was committed. */
    addAfter(failure: unknown, seats: SeatKey[]): void {
      if (!isLocked(failure) && isUnavailable(failure)) add(seats);
    },
    /** Releases the abandoned seats that were committed. Returns how many. */
    async release(): Promise<number> {
      if (abandoned.size === 0) return 0;
      const asked_at = performance.now();
      const asked = [...abandoned.values()];
      const committed = await selectCommittedSeats(
        database.queries,
        asked.map(({ player_id }) => player_id),
      );
      let released = 0;
      for (const [namespace_id, seats] of Map.groupBy(committed, (seat) => seat.namespace_id)) {
        released += await releaseIn(
          namespace_id,
          seats.map(({ player_id }) => player_id),
        );
      }
      for (const seat of asked) {
        seat.first_asked_at ??= asked_at;
        if (asked_at - seat.first_asked_at > LOOK_FOR_MS) abandoned.delete(seat.player_id);
      }
      return released;
    },
  };

  /** Releases seats of one namespace. Leaves them to the next call if another transaction has locked them. */
  async function releaseIn(namespace_id: string, player_ids: string[]): Promise<number> {
    try {
      const how = { reason: 'request_ended', now: clock.now() } as const;
      const { removed } = await database.transact((tx) => removePlayers(tx, namespace_id, isAmong(player_ids), how), {
        lock_wait_max_ms: LOCK_WAIT_MAX_MS,
      });
      for (const player_id of player_ids) abandoned.delete(player_id);
      return removed;
    } catch (error) {
      if (isLocked(error)) return 0;
      throw error;
    }
  }
}
