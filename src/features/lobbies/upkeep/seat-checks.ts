import type { SQL } from 'drizzle-orm';
import { after, type Clock } from '../../../platform/clock.ts';
import type { Database } from '../../../platform/database/database.ts';
import type { Events } from '../../../platform/events.ts';
import { isInUnlocked, removePlayers } from '../players-store.ts';
import type { RemoveReason } from '../tables.ts';
import type { NamespaceSteps } from './namespace-steps.ts';
import { type DueLobby, hasMissedDeadline, hasTimedOut, selectDue, setNextCheck } from './seat-checks-store.ts';

/** How long a removal of seats waits for the list of a namespace. The other namespaces wait meanwhile. */
const LOCK_WAIT_MAX_MS = 1_000;

interface SeatCheckDependencies {
  database: Database;
  clock: Clock;
  events: Events;
  steps: NamespaceSteps;
  seat_timeout_ms: number;
  player_timeout_ms: number;
}

/**
 * Removes the overdue seats of the lobbies whose check is due (I-M6). Checks of a lobby are never further apart than
 * the time that a new seat has, so a seat taken after a check cannot be overdue before the next one, and taking a seat
 * need not schedule a check. A check that is further away was scheduled by a process whose clock was ahead, or with a longer
 * seat timeout, and is due at once. A lobby stays due while another transaction has locked it, or while the seats of its
 * namespace cannot be removed. Returns how many seats it removed.
 */
export async function checkSeats(dependencies: SeatCheckDependencies): Promise<number> {
  const { database, clock, seat_timeout_ms, player_timeout_ms } = dependencies;
  const now = clock.now();
  const times = { now, seated_before: after(now, -player_timeout_ms) };
  const latest = after(now, seat_timeout_ms);
  const due = await selectDue(database.queries, { ...times, latest });
  if (due.length === 0) return 0;
  const expired = due.filter(({ has_expired }) => has_expired);
  const timed_out = due.filter(({ has_timed_out }) => has_timed_out);
  const removed =
    (await removeSeats(dependencies, expired, hasMissedDeadline(times), 'seat_expired')) +
    (await removeSeats(dependencies, timed_out, hasTimedOut(times), 'timed_out'));
  const lobby_ids = due.map(({ lobby_id }) => lobby_id);
  await database.transact((tx) => setNextCheck(tx, lobby_ids, { latest, player_timeout_ms }));
  return removed;
}

async function removeSeats(
  { database, clock, events, steps }: SeatCheckDependencies,
  lobbies: DueLobby[],
  condition: SQL,
  reason: RemoveReason,
): Promise<number> {
  let count = 0;
  await steps.forEachNamespace('seats', lobbies, async (namespace_id, lobbies_there) => {
    const is_overdue = isInUnlocked(
      lobbies_there.map(({ lobby_id }) => lobby_id),
      condition,
    );
    const { removed } = await database.transact(
      (tx) => removePlayers(tx, namespace_id, is_overdue, { reason, now: clock.now() }),
      { lock_wait_max_ms: LOCK_WAIT_MAX_MS },
    );
    count += removed;
  });
  if (count > 0) events.emit({ event: 'seats_expired', reason, count });
  return count;
}
