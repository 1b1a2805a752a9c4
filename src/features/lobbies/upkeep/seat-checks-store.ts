import { type SQL, sql } from 'drizzle-orm';
import type { Queries, Tx } from '../../../platform/database/database.ts';
import { timestamptz } from '../../../platform/database/moments.ts';
import { lobbies, players } from '../tables.ts';

/** Maximum number of lobbies whose check is due, and of those whose check is scheduled for too late, in one query. */
const CHECKED_MAX = 1_000;

/** The times that decide whether a seat is overdue. */
export interface SeatTimes {
  now: Date;
  /** Seats that were given before this moment end: their lobby must have missed that the player left. */
  seated_before: Date;
}

/** Returns a condition: the player did not connect before the seat's deadline. */
export const hasMissedDeadline = ({ now }: SeatTimes): SQL =>
  sql`connect_ts is null and seat_deadline_ts <= ${timestamptz(now)}`;

/** Returns a condition: the player got the seat too long ago. */
export const hasTimedOut = ({ seated_before }: SeatTimes): SQL => sql`create_ts <= ${timestamptz(seated_before)}`;

/** A lobby whose seats are to be checked. */
export interface DueLobby extends Record<string, unknown> {
  lobby_id: string;
  namespace_id: string;
  /** Whether a player did not connect before the seat's deadline. */
  has_expired: boolean;
  /** Whether a player got the seat too long ago. */
  has_timed_out: boolean;
}

/**
 * Returns running lobbies whose check is due, or is scheduled for later than `latest`. No process with a right clock and
 * the current seat timeout schedules one for so late.
 */
export async function selectDue(
  queries: Queries,
  { latest, ...times }: SeatTimes & { latest: Date },
): Promise<DueLobby[]> {
  const hasSeat = (condition: SQL) => sql`
    exists (select from ${players} where lobby_id = due.lobby_id and remove_ts is null and ${condition})`;
  return await queries.execute<DueLobby>(sql`
    with due as (
      (
        select lobby_id, namespace_id from ${lobbies} where stop_ts is null and seats_check_ts <= ${timestamptz(times.now)}
        order by seats_check_ts limit ${CHECKED_MAX}
      )
      union all
      (
        select lobby_id, namespace_id from ${lobbies} where stop_ts is null and seats_check_ts > ${timestamptz(latest)}
        order by seats_check_ts desc limit ${CHECKED_MAX}
      )
    )
    select lobby_id, namespace_id,
      ${hasSeat(hasMissedDeadline(times))} as has_expired, ${hasSeat(hasTimedOut(times))} as has_timed_out
    from due`);
}

/**
 * Sets when lobbies are checked next: when the first of their seats may be overdue, at the latest at `latest`.
 * Lobbies that are being changed at this moment stay due.
 */
export async function setNextCheck(
  tx: Tx,
  lobby_ids: string[],
  { latest, player_timeout_ms }: { latest: Date; player_timeout_ms: number },
): Promise<void> {
  const locked = await tx.execute<{ lobby_id: string }>(sql`
    select lobby_id from ${lobbies} where lobby_id = any(${sql.param(lobby_ids)}::uuid[]) and stop_ts is null
    order by lobby_id for update skip locked`);
  // A statement of its own, after the lobbies' rows are locked: it sees every seat that was kept before.
  await tx.execute(sql`
    update ${lobbies} set seats_check_ts = least(${timestamptz(latest)}, (
      select min(least(
        case when connect_ts is null then seat_deadline_ts end,
        create_ts + ${player_timeout_ms} * interval '1 ms'
      ))
      from ${players} where ${players.lobby_id} = ${lobbies.lobby_id} and remove_ts is null
    ))
    where lobby_id = any(${sql.param(locked.map(({ lobby_id }) => lobby_id))}::uuid[])`);
}
