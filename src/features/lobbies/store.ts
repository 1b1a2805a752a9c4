import { and, asc, eq, getTableColumns, gt, isNotNull, isNull, lt, type SQL, sql } from 'drizzle-orm';
import type { Queries, Tx } from '../../platform/database/database.ts';
import type { DedicatedConnection } from '../../platform/database/dedicated-connection.ts';
import { createQuery, createStatement } from '../../platform/database/statement.ts';
import { assert } from '../../platform/errors.ts';
import { bump, bumpMany, lockTopics } from '../../platform/watch/versions.ts';
import { hasLostMachine, isEnding, isOnMachine, machineOf } from '../servers/servers.ts';
import { topics } from '../topics.ts';
import { recordChanges } from './changed-lobbies-store.ts';
import { type LockedOutcome, lockSkippingLocked } from './lobby-locks-store.ts';
import { type LobbyRow, lobbies, lobbyCounts, players, type StopReason } from './tables.ts';

/** A lobby without its state, which may be long. */
export type LobbyWithoutState = Omit<LobbyRow, 'state'>;
const { state: _state, ...others } = getTableColumns(lobbies);
export const WITHOUT_STATE = others;

const LOBBIES_MAX = 100_000;
const DUE_MAX = 1_000;

const BY_ID = createQuery<{ lobby_id: string }, LobbyRow[]>((queries, value) =>
  queries
    .select()
    .from(lobbies)
    .where(eq(lobbies.lobby_id, value('lobby_id'))),
);

export async function selectLobby(queries: Queries, lobby_id: string): Promise<LobbyRow | undefined> {
  const [row] = await BY_ID(queries, { lobby_id });
  return row;
}

const BY_ID_WITHOUT_STATE = createQuery<{ lobby_id: string }, LobbyWithoutState[]>((queries, value) =>
  queries
    .select(WITHOUT_STATE)
    .from(lobbies)
    .where(eq(lobbies.lobby_id, value('lobby_id'))),
);

export async function selectLobbyWithoutState(
  queries: Queries,
  lobby_id: string,
): Promise<LobbyWithoutState | undefined> {
  const [row] = await BY_ID_WITHOUT_STATE(queries, { lobby_id });
  return row;
}

/** Returns the id of the running lobby on a server. */
export async function selectLobbyOn(queries: Queries, server_id: string): Promise<string | undefined> {
  const [row] = await queries
    .select({ lobby_id: lobbies.lobby_id })
    .from(lobbies)
    .where(and(eq(lobbies.server_id, server_id), isNull(lobbies.stop_ts)));
  return row?.lobby_id;
}

/** Returns the unready running lobbies on servers. */
export async function selectUnreadyOn(queries: Queries, server_ids: string[]) {
  return await queries
    .select({ lobby_id: lobbies.lobby_id, server_id: lobbies.server_id })
    .from(lobbies)
    .where(
      and(
        sql`${lobbies.server_id} = any(${sql.param(server_ids)}::uuid[])`,
        isNull(lobbies.ready_ts),
        isNull(lobbies.stop_ts),
      ),
    )
    .orderBy(asc(lobbies.create_ts))
    // One server has one running lobby.
    .limit(server_ids.length);
}

const BY_CODE = createQuery<{ namespace_id: string; code: string }, LobbyRow[]>((queries, value) =>
  queries
    .select()
    .from(lobbies)
    .where(
      and(eq(lobbies.namespace_id, value('namespace_id')), eq(lobbies.code, value('code')), isNull(lobbies.stop_ts)),
    ),
);

/** Returns the running lobby of a namespace with a code. */
export async function selectLobbyByCode(
  queries: Queries,
  namespace_id: string,
  code: string,
): Promise<LobbyRow | undefined> {
  const [row] = await BY_CODE(queries, { namespace_id, code });
  return row;
}

/** Locks the list of lobbies of a namespace until the transaction ends. */
export async function lockList(tx: Tx, namespace_id: string): Promise<void> {
  await lockTopics(tx, [topics.lobbiesOf(namespace_id)]);
}

/**
 * Locks the topic of the namespace's list, then returns whether the lobby meets a condition. Locks first, so that a change
 * that another process already made bumps nothing.
 */
async function lockThenCheck(
  tx: Tx,
  { lobby_id, namespace_id }: Pick<LobbyRow, 'lobby_id' | 'namespace_id'>,
  condition: SQL | undefined,
): Promise<boolean> {
  await lockList(tx, namespace_id);
  const ofLobby = and(eq(lobbies.lobby_id, lobby_id), condition);
  return (await tx.select({ lobby_id: lobbies.lobby_id }).from(lobbies).where(ofLobby)).length > 0;
}

/** Records that a lobby is ready, and starts the deadlines of its players. Undefined if it was ready or has stopped. */
export async function setReady(
  tx: Tx,
  lobby: LobbyRow,
  { now, deadline, ports }: { now: Date; deadline: Date; ports: LobbyRow['ports'] },
): Promise<LobbyRow | undefined> {
  const is_starting = and(isNull(lobbies.ready_ts), isNull(lobbies.stop_ts));
  if (!(await lockThenCheck(tx, lobby, is_starting))) return undefined;
  const changed = await touchLobby(tx, lobby);
  const [row] = await tx
    .update(lobbies)
    .set({ ready_ts: now, ports, changed })
    .where(and(eq(lobbies.lobby_id, lobby.lobby_id), is_starting))
    .returning();
  if (!row) return undefined;
  // A statement of its own, after the lobby's row is locked: it sees every player seated before.
  await tx
    .update(players)
    .set({ seat_deadline_ts: deadline })
    .where(and(eq(players.lobby_id, lobby.lobby_id), isNull(players.remove_ts), isNull(players.connect_ts)));
  return row;
}

/** Changes that a running lobby reports. A missing property stays as it is; an empty state removes the state. */
export interface LobbyUpdate {
  lobby_id: string;
  is_closed?: boolean;
  state?: string;
}

const UPDATE = createStatement<{
  lobby_id: string[];
  is_closed: (boolean | null)[];
  state: (string | null)[];
  now: string;
}>(
  (value) => sql`
    with running as (
      select namespace_id, lobby_id from ${lobbies}
      where lobby_id = any(${value('lobby_id')}::uuid[]) and stop_ts is null
    ),
    ${bumpMany(
      sql`
        select name from (
          select distinct unnest(array[${topics.lobbiesOf('')}::text || namespace_id, ${topics.lobby('')}::text || lobby_id])
          from running
        ) as of_lobbies (name) order by name collate "C"`,
      'bumped',
    )},
    ${recordChanges(sql`select namespace_id, lobby_id from running`)},
    -- There are far fewer lists than lobbies, and each lobby looks for the list of its namespace.
    lists as materialized (select topic, version from bumped where starts_with(topic, ${topics.lobbiesOf('')})),
    unlocked as (${lockSkippingLocked(sql`array(select lobby_id from running)`)}),
    updated as (
      update ${lobbies} set
        is_closed = coalesce(updates.is_closed, ${lobbies.is_closed}),
        closed_ts = case
          when not coalesce(updates.is_closed, ${lobbies.is_closed}) then null
          when not ${lobbies.is_closed} then ${value('now')}::timestamptz
          else ${lobbies.closed_ts}
        end,
        state = nullif(coalesce(updates.state, ${lobbies.state}), ''),
        changed = (select version from lists where topic = ${topics.lobbiesOf('')}::text || ${lobbies.namespace_id})
      from unnest(${value('lobby_id')}::uuid[], ${value('is_closed')}::boolean[], ${value('state')}::text[])
        as updates (lobby_id, is_closed, state)
        join unlocked using (lobby_id)
      where ${lobbies.lobby_id} = updates.lobby_id and stop_ts is null
      returning ${lobbies.lobby_id}
    )
    select lobby_id, updated.lobby_id is null as is_locked
    from running left join unlocked using (lobby_id) left join updated using (lobby_id)
    where updated.lobby_id is not null or unlocked.lobby_id is null`,
);

/**
 * Applies the changes that lobbies report. If two of them set one property of a lobby, the later one counts. Returns what it
 * did to the running lobbies. Does not wait for lobbies that are locked, because the others would wait too.
 */
export async function updateLobbies(
  connection: DedicatedConnection,
  updates: LobbyUpdate[],
  now: Date,
): Promise<Map<string, LockedOutcome>> {
  const merged = new Map<string, LobbyUpdate>();
  for (const update of updates) merged.set(update.lobby_id, { ...merged.get(update.lobby_id), ...update });
  const all = [...merged.values()];
  const statement = UPDATE({
    lobby_id: all.map(({ lobby_id }) => lobby_id),
    is_closed: all.map(({ is_closed }) => is_closed ?? null),
    state: all.map(({ state }) => state ?? null),
    now: now.toISOString(),
  });
  const rows = await connection.execute<{ lobby_id: string; is_locked: boolean }>(statement);
  return new Map(rows.map(({ lobby_id, is_locked }) => [lobby_id, is_locked ? 'locked' : 'done']));
}

/**
 * Stops a running lobby and removes its players. Returns undefined if it has already stopped, or must be empty and is
 * not.
 */
export async function stopLobby(
  tx: Tx,
  lobby: Pick<LobbyRow, 'lobby_id' | 'namespace_id'>,
  { reason, now, only_if_empty }: { reason: StopReason; now: Date; only_if_empty: boolean },
): Promise<LobbyRow | undefined> {
  const may_stop = and(isNull(lobbies.stop_ts), only_if_empty ? eq(lobbies.player_count, 0) : undefined);
  if (!(await lockThenCheck(tx, lobby, may_stop))) return undefined;
  const changed = await touchLobby(tx, lobby);
  const [row] = await tx
    .update(lobbies)
    .set({ stop_ts: now, stop_reason: reason, player_count: 0, changed })
    .where(and(eq(lobbies.lobby_id, lobby.lobby_id), may_stop))
    .returning();
  if (!row) return undefined;
  await tx
    .update(players)
    .set({ remove_ts: now, remove_reason: 'lobby_stopped' })
    .where(and(eq(players.lobby_id, lobby.lobby_id), isNull(players.remove_ts)));
  await tx
    .update(lobbyCounts)
    .set({ lobby_count: sql`${lobbyCounts.lobby_count} - 1` })
    .where(eq(lobbyCounts.namespace_id, lobby.namespace_id));
  return row;
}

/** Returns how many lobbies of a namespace run. */
export async function countLobbies(queries: Queries, namespace_id: string): Promise<number> {
  const [row] = await queries
    .select({ lobby_count: lobbyCounts.lobby_count })
    .from(lobbyCounts)
    .where(eq(lobbyCounts.namespace_id, namespace_id));
  return row?.lobby_count ?? 0;
}

/** Returns whether any lobby runs, in any namespace. */
export async function hasRunning(queries: Queries): Promise<boolean> {
  const rows = await queries
    .select({ lobby_id: lobbies.lobby_id })
    .from(lobbies)
    .where(isNull(lobbies.stop_ts))
    .limit(1);
  return rows.length > 0;
}

/** A running lobby whose server is ending or has ended. */
export type LobbyOnEndingServer = LobbyWithoutState & { has_lost_machine: boolean };

/** Returns the running lobbies whose server is ending or has ended. */
export async function selectOnEndingServers(queries: Queries): Promise<LobbyOnEndingServer[]> {
  return await queries
    .select({ ...WITHOUT_STATE, has_lost_machine: sql<boolean>`${hasLostMachine(lobbies.server_id)}` })
    .from(lobbies)
    .where(and(isNull(lobbies.stop_ts), isEnding(lobbies.server_id)))
    .orderBy(asc(lobbies.create_ts))
    .limit(DUE_MAX);
}

/** Returns the running lobbies on machines. */
export async function selectOnMachines(queries: Queries, node_ids: readonly string[]): Promise<LobbyWithoutState[]> {
  if (node_ids.length === 0) return [];
  return await queries
    .select(WITHOUT_STATE)
    .from(lobbies)
    .where(and(isNull(lobbies.stop_ts), isOnMachine(lobbies.server_id, node_ids)))
    .orderBy(asc(lobbies.create_ts))
    .limit(LOBBIES_MAX);
}

/** Returns how many lobbies run, and their players, by machine. Lobbies whose server has no machine yet have the key ''. */
export async function countByMachine(queries: Queries): Promise<Map<string, { lobbies: number; players: number }>> {
  const running = queries
    .select({
      node_id: sql<string | null>`${machineOf(lobbies.server_id)}`.as('node_id'),
      player_count: lobbies.player_count,
    })
    .from(lobbies)
    .where(isNull(lobbies.stop_ts))
    .as('running');
  const rows = await queries
    .select({
      node_id: running.node_id,
      lobbies: sql<number>`count(*)::int`,
      players: sql<number>`sum(${running.player_count})::int`,
    })
    .from(running)
    .groupBy(running.node_id);
  return new Map(rows.map(({ node_id, ...count }) => [node_id ?? '', count]));
}

/** Returns the running lobbies that were created before a given time and are not ready. */
export async function selectUnreadyBefore(queries: Queries, created_before: Date): Promise<LobbyWithoutState[]> {
  return await queries
    .select(WITHOUT_STATE)
    .from(lobbies)
    .where(and(isNull(lobbies.stop_ts), isNull(lobbies.ready_ts), lt(lobbies.create_ts, created_before)))
    .orderBy(asc(lobbies.create_ts))
    .limit(DUE_MAX);
}

/** Returns all empty running lobbies, longest empty first. */
export async function selectIdle(queries: Queries): Promise<LobbyWithoutState[]> {
  return await queries
    .select(WITHOUT_STATE)
    .from(lobbies)
    .where(and(isNull(lobbies.stop_ts), isNotNull(lobbies.idle_ts), eq(lobbies.player_count, 0)))
    .orderBy(asc(lobbies.idle_ts))
    .limit(LOBBIES_MAX);
}

/** Bumps a lobby that changes, and the topics that change with it. Returns the version of its namespace's list. */
export async function touchLobby(
  tx: Tx,
  { lobby_id, namespace_id }: Pick<LobbyRow, 'lobby_id' | 'namespace_id'>,
  others: string[] = [],
): Promise<number> {
  const list = topics.lobbiesOf(namespace_id);
  const rows = await tx.execute<{ topic: string; version: string }>(sql`
    with ${bump([list, topics.lobby(lobby_id), ...others])},
    ${recordChanges(sql`select ${namespace_id}::uuid as namespace_id, ${lobby_id}::uuid as lobby_id`)}
    select topic, version from bumped`);
  const bumped = rows.find(({ topic }) => topic === list);
  assert(bumped, 'a statement returns the versions that it bumps');
  return Number(bumped.version);
}

/**
 * Returns how many lobbies run in each namespace that has any, and how many players they have. Has no limit: its rows
 * are short, and a namespace that a limit left out would count as empty.
 */
export async function countByNamespace(
  queries: Queries,
): Promise<{ namespace_id: string; lobbies: number; players: number }[]> {
  return await queries
    .select({
      namespace_id: lobbies.namespace_id,
      lobbies: sql<number>`count(*)::int`,
      players: sql<number>`sum(${lobbies.player_count})::int`,
    })
    .from(lobbies)
    .where(isNull(lobbies.stop_ts))
    .groupBy(lobbies.namespace_id);
}

/** Returns how many players have a seat, by game; games without any are missing. */
export async function selectPlayersByGame(queries: Queries): Promise<Map<string, number>> {
  const rows = await queries
    .select({ game_id: lobbies.game_id, player_count: sql<number>`sum(${lobbies.player_count})::int` })
    .from(lobbies)
    .where(and(isNull(lobbies.stop_ts), gt(lobbies.player_count, 0)))
    .groupBy(lobbies.game_id);
  return new Map(rows.map(({ game_id, player_count }) => [game_id, player_count]));
}
