import { after, type Clock } from '../../../../platform/clock.ts';
import type { Database, LockOptions } from '../../../../platform/database/database.ts';
import type { AbandonedSeats } from '../../upkeep/abandoned-seats.ts';
import * as store from './seats-store.ts';

/** How long a round waits for a lock. Longer than a busy service holds one; the requests of all namespaces wait meanwhile. */
const ROUND_LOCK_WAIT_MAX_MS = 500;

/** Takes seats in running lobbies. */
export interface SeatTaking {
  /**
   * Takes seats. Counts the players of clients exactly if `is_strict`. Fails if a lock is held for long (`isLocked`), because
   * the requests of all other namespaces of the round would wait for it, too.
   */
  takeUnlessLocked(
    seats: store.ProposedSeat[],
    options: { has_queue: boolean; is_strict: boolean },
  ): Promise<store.TakenSeats>;
  /**
   * Takes seats of one namespace, and counts the players of clients exactly. Waits for its locks, and fails if they are held
   * for longer (`isLocked`).
   */
  takeInNamespace(seats: store.ProposedSeat[], options?: LockOptions): Promise<store.TakenSeats>;
}

interface SeatTakingDependencies {
  database: Database;
  clock: Clock;
  abandoned_seats: Pick<AbandonedSeats, 'addAfter'>;
  seat_timeout_ms: number;
}

/** Takes the seats of rounds in the database. */
export function openSeatTaking(dependencies: SeatTakingDependencies): SeatTaking {
  const { database, clock, abandoned_seats, seat_timeout_ms } = dependencies;
  const connection = database.openDedicatedConnection({ lock_wait_max_ms: ROUND_LOCK_WAIT_MAX_MS });

  function readMoments() {
    const now = clock.now();
    return { now, deadline: after(now, seat_timeout_ms) };
  }

  return {
    async takeUnlessLocked(seats, { has_queue, is_strict }) {
      const moments = readMoments();
      const lock_options = { lock_wait_max_ms: ROUND_LOCK_WAIT_MAX_MS };
      if (is_strict) return await takeStrictly(seats, moments, lock_options);
      try {
        return await store.takeSeats(connection, seats, moments, { has_queue });
      } catch (error) {
        // Another transaction has seated players of one of the clients meanwhile.
        if (store.isConflict(error)) return await takeStrictly(seats, moments, lock_options);
        abandoned_seats.addAfter(error, seats);
        throw error;
      }
    },
    takeInNamespace: (seats, options) => takeStrictly(seats, readMoments(), options),
  };

  async function takeStrictly(
    seats: store.ProposedSeat[],
    moments: ReturnType<typeof readMoments>,
    options: LockOptions | undefined,
  ): Promise<store.TakenSeats> {
    try {
      return await database.transact((tx) => store.takeSeatsUnderLock(tx, seats, moments), options);
    } catch (error) {
      abandoned_seats.addAfter(error, seats);
      throw error;
    }
  }
}
