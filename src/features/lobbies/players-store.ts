import { and, eq, getTableColumns, inArray, type SQL, sql } from 'drizzle-orm';
import type { Queries } from '../../platform/database/database.ts';
import type { DedicatedConnection } from '../../platform/database/dedicated-connection.ts';
import { timestamptz } from '../../platform/database/moments.ts';
import { createQuery, createStatement } from '../../platform/database/statement.ts';
import { bump, bumpMany, bumpSelected } from '../../platform/watch/versions.ts';
import { topics } from '../topics.ts';
import { recordChanges } from './changed-lobbies-store.ts';
import { type LockedOutcome, lockSkippingLocked } from './lobby-locks-store.ts';
import { lobbies, type PlayerRow, players, type RemoveReason } from './tables.ts';

const BY_ID = createQuery<{ player_id: string }, PlayerRow[]>((queries, value) =>
  queries
    .select()
    .from(players)
    .where(eq(players.player_id, value('player_id'))),
);

export async function selectPlayer(queries: Queries, player_id: string): Promise<PlayerRow | undefined> {
  const [row] = await BY_ID(queries, { player_id });
  return row;
}

/** The seat of a player to kick: all ids must fit together. */
export interface SeatToKick {
  game_id: string;
  lobby_id: string;
  player_id: string;
}

/** Returns a player of a lobby of a game. */
export async function selectPlayerOfGame(
  queries: Queries,
  { game_id, lobby_id, player_id }: SeatToKick,
): Promise<PlayerRow | undefined> {
  const [row] = await queries
    .select(getTableColumns(players))
    .from(players)
    .innerJoin(lobbies, eq(lobbies.lobby_id, players.lobby_id))
    .where(and(eq(players.player_id, player_id), eq(players.lobby_id, lobby_id), eq(lobbies.game_id, game_id)));
  return row;
}

/** Returns those of some players who were kicked. */
export async function selectKicked(queries: Queries, player_ids: string[]): Promise<string[]> {
  const rows = await queries
    .select({ player_id: players.player_id })
    .from(players)
    .where(and(inArray(players.player_id, player_ids), eq(players.remove_reason, 'kicked')));
  return rows.map(({ player_id }) => player_id);
}

/** A player who connects to a lobby. */
export type Connect = Pick<PlayerRow, 'player_id' | 'lobby_id'>;

const CONNECT = createStatement<{ player_ids: string[]; lobby_ids: string[]; now: string }>((value) => {
  // `coalesce`, because with `remove_ts is null` the planner may scan the index of all seated players.
  const may_connect = sql`
    coalesce(connect_ts, remove_ts) is null
      and (seat_deadline_ts is null or seat_deadline_ts > ${value('now')}::timestamptz)`;
  return sql`
    -- A player who may not connect bumps nothing, so it wakes no watcher.
    with connects as (
      select distinct player_id, lobby_id, namespace_id
      from unnest(${value('player_ids')}::uuid[], ${value('lobby_ids')}::uuid[]) as connect (player_id, lobby_id)
      join ${players} using (player_id, lobby_id)
      where ${may_connect}
    ),
    ${bumpMany(
      sql`
        select name from (
          select ${topics.playersOf('')}::text || namespace_id from connects
          union select ${topics.connectedIn('')}::text || lobby_id from connects
        ) as of_connects (name) order by name collate "C"`,
      'bumped',
    )}
    update ${players} set connect_ts = ${value('now')}::timestamptz from connects
    where ${players.player_id} = connects.player_id and ${may_connect}
      -- Counting "bumped" locks the topics' versions before any other row. All transactions lock in this order, so no
      -- two wait for each other.
      and (select count(*) from bumped) > 0
    returning ${players.player_id}, ${players.lobby_id}`;
});

/**
 * Records that players have connected: each once, to the right lobby, in time, and while it has its seat (I-M3).
 * Returns the lobbies of the connected players, by player id.
 */
export async function setConnected(
  connection: DedicatedConnection,
  connects: Connect[],
  now: Date,
): Promise<Map<string, string>> {
  const player_ids = connects.map(({ player_id }) => player_id);
  const lobby_ids = connects.map(({ lobby_id }) => lobby_id);
  const statement = CONNECT({ player_ids, lobby_ids, now: now.toISOString() });
  const rows = await connection.execute<Record<string, unknown> & Connect>(statement);
  return new Map(rows.map(({ player_id, lobby_id }) => [player_id, lobby_id]));
}

const DISCONNECT = createStatement<{ player_ids: string[]; now: string }>(
  (value) => sql`
    with leaving as (
      select player_id, lobby_id, namespace_id from ${players}
      where player_id = any(${value('player_ids')}::uuid[]) and remove_ts is null
    ),
    -- A player who has left before bumps nothing, so it wakes no watcher.
    ${bumpMany(
      sql`
        select name from (
          select ${topics.lobbiesOf('')}::text || namespace_id from leaving
          union select ${topics.playersOf('')}::text || namespace_id from leaving
        ) as of_leaving (name) order by name collate "C"`,
      'bumped',
    )},
    ${recordChanges(sql`select namespace_id, lobby_id from leaving`)},
    unlocked as (${lockSkippingLocked(sql`array(select lobby_id from leaving)`)}),
    gone as (
      update ${players} set remove_ts = ${value('now')}::timestamptz, remove_reason = 'disconnected'
      from leaving join unlocked using (lobby_id)
      where ${players.player_id} = leaving.player_id and remove_ts is null
      returning ${players.player_id}, ${players.lobby_id}, connect_ts is not null as was_connected
    ),
    freed as (
      update ${lobbies} set
        player_count = player_count - seats,
        idle_ts = case when player_count = seats then ${value('now')}::timestamptz else idle_ts end,
        changed = (select version from bumped where topic = ${topics.lobbiesOf('')}::text || ${lobbies.namespace_id})
      from (select lobby_id, count(*) as seats from gone group by lobby_id) as freed_seats
      where ${lobbies.lobby_id} = freed_seats.lobby_id
    ),
    ${bumpMany(
      sql`
        select name from (
          select distinct ${topics.connectedIn('')}::text || lobby_id from gone where was_connected
        ) as of_connected (name) order by name collate "C"`,
      'bumped_connected',
    )}
    select player_id, gone.player_id is null as is_locked, (select count(*) from bumped_connected) as bumped
    from leaving left join unlocked using (lobby_id) left join gone using (player_id)
    where gone.player_id is not null or unlocked.lobby_id is null`,
);

/**
 * Removes players who have left, and frees their seats, each once (I-M2). Returns what it did for each player who had a
 * seat. Does not wait for lobbies that are locked, because the other players would wait too.
 */
export async function setDisconnected(
  connection: DedicatedConnection,
  player_ids: string[],
  now: Date,
): Promise<Map<string, LockedOutcome>> {
  const rows = await connection.execute<{ player_id: string; is_locked: boolean }>(
    DISCONNECT({ player_ids, now: now.toISOString() }),
  );
  return new Map(rows.map(({ player_id, is_locked }) => [player_id, is_locked ? 'locked' : 'done']));
}

/**
 * Keeps the seat of a disconnected player for a while, in which the player may connect again. Does not wait for a lobby that
 * is locked.
 */
export async function keepSeat(queries: Queries, player: PlayerRow, until: Date): Promise<LockedOutcome> {
  const bumped = [topics.playersOf(player.namespace_id), topics.connectedIn(player.lobby_id)];
  const rows = await queries.execute(sql`
    with ${bump(bumped)},
    unlocked as (${lockSkippingLocked(sql`array[${player.lobby_id}::uuid]`)}),
    -- Unlike the deadline of a new seat, this one may come before the lobby's next check.
    checked as (
      update ${lobbies} set seats_check_ts = least(seats_check_ts, ${timestamptz(until)})
      from unlocked where ${lobbies.lobby_id} = unlocked.lobby_id
      returning ${lobbies.lobby_id}
    ),
    kept as (
      update ${players} set connect_ts = null, seat_deadline_ts = ${timestamptz(until)} from checked
      where player_id = ${player.player_id}::uuid and connect_ts is not null and remove_ts is null
    )
    select lobby_id from unlocked`);
  return rows.length > 0 ? 'done' : 'locked';
}

/**
 * Removes the players of a namespace that meet a condition, and frees their seats, each once (I-M2): of several statements
 * that remove a player at one time, one does. Returns how many were removed, and how many lobbies are empty now.
 */
export async function removePlayers(
  queries: Queries,
  namespace_id: string,
  condition: SQL,
  { reason, now }: { reason: RemoveReason; now: Date },
): Promise<{ removed: number; emptied: number }> {
  const kicks = reason === 'kicked' ? [topics.kicks()] : [];
  const [row] = await queries.execute<{ removed: string; emptied: string }>(sql`
    with ${bump([topics.lobbiesOf(namespace_id), topics.playersOf(namespace_id), ...kicks])},
    gone as (
      update ${players} set remove_ts = ${timestamptz(now)}, remove_reason = ${reason}
      where namespace_id = ${namespace_id}::uuid and remove_ts is null and ${condition}
        and (select count(*) from bumped) > 0
      returning namespace_id, lobby_id, connect_ts is not null as was_connected
    ),
    ${recordChanges(sql`select namespace_id, lobby_id from gone`)},
    freed as (
      update ${lobbies} set
        player_count = player_count - seats,
        idle_ts = case when player_count = seats then ${timestamptz(now)} else idle_ts end,
        changed = (select version from bumped where topic = ${topics.lobbiesOf(namespace_id)})
      from (select lobby_id, count(*) as seats from gone group by lobby_id) as freed_seats
      where ${lobbies.lobby_id} = freed_seats.lobby_id
      returning player_count, ${lobbies.lobby_id}
    ),
    ${bumpSelected(
      sql`
        select ${topics.connectedIn('')}::text || lobby_id
        from (select distinct lobby_id from gone where was_connected order by lobby_id) as of_connected`,
      'bumped_connected',
    )}
    select
      (select count(*) from bumped_connected) as bumped,
      (select count(*) from gone) as removed,
      (select count(*) from freed where player_count = 0) as emptied`);
  return { removed: Number(row?.removed ?? 0), emptied: Number(row?.emptied ?? 0) };
}

/** Returns a condition of `removePlayers`: the player is one of these. */
export const isAmong = (player_ids: string[]): SQL => sql`player_id = any(${sql.param(player_ids)}::uuid[])`;

/**
 * Returns a condition of `removePlayers`: the player has a seat in one of the lobbies, and meets another condition. It is
 * false for players of lobbies that another transaction has locked.
 */
export const isInUnlocked = (lobby_ids: string[], condition: SQL): SQL =>
  sql`lobby_id = any(array(${lockSkippingLocked(sql`${sql.param(lobby_ids)}::uuid[]`)})) and ${condition}`;
