import { and, asc, eq, getTableColumns, gt, inArray, isNotNull, isNull, lt, not, sql } from 'drizzle-orm';
import type { Queries, Tx } from '../../platform/database/database.ts';
import { at } from '../../platform/database/moments.ts';
import { CHANGES_CHANNEL, raiseVersions, touch } from '../../platform/watch/versions.ts';
import { isEnding } from '../servers/servers.ts';
import { topics } from '../topics.ts';
import { raiseSeats } from './players-store.ts';
import { type LobbyRow, lobbies, lobbyCounts, type PlayerRow, players, type StopReason } from './tables.ts';

const LOBBIES_MAX = 100_000;
const DUE_MAX = 1_000;

export async function selectLobby(queries: Queries, lobby_id: string): Promise<LobbyRow | undefined> {
  const [row] = await queries.select().from(lobbies).where(eq(lobbies.lobby_id, lobby_id));
  return row;
}

/** The running lobby of a namespace that a code leads to. */
export async function selectLobbyByCode(
  queries: Queries,
  namespace_id: string,
  code: string,
): Promise<LobbyRow | undefined> {
  const [row] = await queries
    .select()
    .from(lobbies)
    .where(and(eq(lobbies.namespace_id, namespace_id), eq(lobbies.code, code), isNull(lobbies.stop_ts)));
  return row;
}

/** Those of the lobbies that run, on a server that is not going. */
export async function selectAlive(queries: Queries, lobby_ids: string[]): Promise<LobbyRow[]> {
  return await queries
    .select()
    .from(lobbies)
    .where(and(inArray(lobbies.lobby_id, lobby_ids), isNull(lobbies.stop_ts), not(isEnding(lobbies.server_id))))
    .orderBy(asc(lobbies.lobby_id))
    .limit(LOBBIES_MAX);
}

/** The running lobbies of a namespace. */
export async function selectRunning(queries: Queries, namespace_id: string): Promise<LobbyRow[]> {
  return await queries
    .select()
    .from(lobbies)
    .where(and(eq(lobbies.namespace_id, namespace_id), isNull(lobbies.stop_ts)))
    .orderBy(asc(lobbies.create_ts), asc(lobbies.lobby_id))
    .limit(LOBBIES_MAX);
}

/** The lobbies of a namespace that changed after a version of its list, stopped ones too. */
export async function selectChanged(queries: Queries, namespace_id: string, version: number): Promise<LobbyRow[]> {
  return await queries
    .select()
    .from(lobbies)
    .where(and(eq(lobbies.namespace_id, namespace_id), gt(lobbies.changed, version)))
    .orderBy(asc(lobbies.changed))
    .limit(LOBBIES_MAX);
}

/**
 * Counts one more lobby of a namespace, if that many are allowed, and tells of it. Gives the version of the namespace's
 * list with which the lobby is to be inserted.
 */
export async function countLobby(
  tx: Tx,
  lobby: Pick<LobbyRow, 'lobby_id' | 'namespace_id'>,
  lobby_count_max: number,
): Promise<number | undefined> {
  const changed = await touchLobby(tx, lobby);
  const counted = await tx
    .insert(lobbyCounts)
    .values({ namespace_id: lobby.namespace_id, lobby_count: 1 })
    .onConflictDoUpdate({
      target: lobbyCounts.namespace_id,
      set: { lobby_count: sql`${lobbyCounts.lobby_count} + 1` },
      setWhere: lt(lobbyCounts.lobby_count, lobby_count_max),
    })
    .returning({ lobby_count: lobbyCounts.lobby_count });
  return counted.length > 0 ? changed : undefined;
}

/** Until the transaction ends, nobody else changes which lobbies a namespace has. */
export async function lockList(tx: Tx, namespace_id: string): Promise<void> {
  await touch(tx, [topics.lobbiesOf(namespace_id)]);
}

/** Makes a lobby, with its founders' seats taken. */
export async function insertLobby(
  tx: Tx,
  lobby: LobbyRow,
  founders: Pick<PlayerRow, 'player_id' | 'address'>[],
): Promise<void> {
  await tx.insert(lobbies).values(lobby);
  await tx.execute(sql`
    insert into ${players} (player_id, lobby_id, namespace_id, address, create_ts)
    select founder.player_id, ${lobby.lobby_id}::uuid, ${lobby.namespace_id}::uuid, founder.address, ${at(lobby.create_ts)}
    from unnest(
      ${sql.param(founders.map(({ player_id }) => player_id))}::uuid[],
      ${sql.param(founders.map(({ address }) => address))}::text[]
    ) as founder (player_id, address)`);
}

/** A proposed seat. */
export interface ProposedSeat {
  player_id: string;
  lobby_id: string;
  namespace_id: string;
  /** A join comes to a lobby it knows, a find to one that was chosen for it. */
  kind: 'find' | 'party' | 'join';
  address: string;
}

/**
 * Takes many seats in one statement. For each lobby, all who were proposed or nobody: it and its server must not be
 * ending (I-M5), it must have room for them (finds by its normal maximum, parties by theirs, joins by the direct one) and,
 * if anybody came by find, be open. This is the only place that fills lobbies after their founding (I-M1), and the only one that decides
 * whether a closed one is found (I-M4).
 */
export async function takeSeats(
  queries: Queries,
  seats: ProposedSeat[],
  { now, deadline }: { now: Date; deadline: Date },
): Promise<LobbyRow[]> {
  const column = (key: keyof ProposedSeat) => sql.param(seats.map((seat) => seat[key]));
  const rows = await queries.execute<Record<string, unknown>>(sql`
    with ${raiseVersions(seats.map(({ namespace_id }) => topics.lobbiesOf(namespace_id)))},
    told as (
      select topic, version, pg_notify(${CHANGES_CHANNEL}, version || ' ' || topic) from raised
    ),
    proposed as (
      -- The count makes the namespaces' versions the first rows that are locked, here as everywhere.
      select seat.* from unnest(
        ${column('player_id')}::uuid[], ${column('lobby_id')}::uuid[], ${column('namespace_id')}::uuid[],
        ${column('kind')}::text[], ${column('address')}::text[]
      ) as seat (player_id, lobby_id, namespace_id, kind, address)
      where (select count(*) from told) > 0
    ),
    wanted as (
      select lobby_id, namespace_id,
        count(*) filter (where kind = 'find') as finds, count(*) filter (where kind = 'party') as parties,
        count(*) filter (where kind = 'join') as joins
      from proposed group by lobby_id, namespace_id
    ),
    accepting as (
      update ${lobbies} set
        player_count = player_count + finds + parties + joins,
        idle_ts = null,
        changed = (select version from told where topic = ${topics.lobbiesOf('')}::text || ${lobbies.namespace_id})
      from wanted
      where ${lobbies.lobby_id} = wanted.lobby_id and ${lobbies.namespace_id} = wanted.namespace_id and stop_ts is null
        and not ${isEnding(lobbies.server_id)}
        and (finds + parties = 0 or not is_closed)
        -- Those with the lower maximum come first; only the others count them.
        and (finds = 0 or player_count + finds
          + case when max_players_party < max_players_normal then parties else 0 end
          + case when max_players_direct < max_players_normal then joins else 0 end <= max_players_normal)
        and (parties = 0 or player_count + parties
          + case when max_players_party < max_players_normal then 0 else finds end
          + case when max_players_direct < max_players_party then joins else 0 end <= max_players_party)
        and (joins = 0 or player_count + joins
          + case when max_players_direct < max_players_normal then 0 else finds end
          + case when max_players_direct < max_players_party then 0 else parties end <= max_players_direct)
      returning ${lobbies}.*
    ),
    seated as (
      insert into ${players} (player_id, lobby_id, namespace_id, address, create_ts, seat_deadline_ts)
      select proposed.player_id, proposed.lobby_id, proposed.namespace_id, proposed.address, ${at(now)},
        case when accepting.ready_ts is null then null else ${at(deadline)} end
      from proposed join accepting on accepting.lobby_id = proposed.lobby_id
    ),
    ${raiseSeats('accepting')}
    select * from accepting where (select count(*) from told_seats) > 0`);
  return rows.map(toLobbyRow);
}

/** Notes that a lobby is ready and starts the time its players have. Gives it; undefined when it was, or has stopped. */
export async function setReady(
  tx: Tx,
  lobby: LobbyRow,
  { now, deadline, ports }: { now: Date; deadline: Date; ports: LobbyRow['ports'] },
): Promise<LobbyRow | undefined> {
  const changed = await touchLobby(tx, lobby);
  const [row] = await tx
    .update(lobbies)
    .set({ ready_ts: now, ports, changed })
    .where(and(eq(lobbies.lobby_id, lobby.lobby_id), isNull(lobbies.ready_ts), isNull(lobbies.stop_ts)))
    .returning();
  if (!row) return undefined;
  // In a statement of its own, after the lobby's row is ours: it sees everybody who was seated before.
  await tx
    .update(players)
    .set({ seat_deadline_ts: deadline })
    .where(and(eq(players.lobby_id, lobby.lobby_id), isNull(players.remove_ts), isNull(players.connect_ts)));
  return row;
}

/** Changes what a running lobby says of itself. False when it has stopped. */
export async function updateLobby(
  tx: Tx,
  lobby: LobbyRow,
  values: Partial<Pick<LobbyRow, 'is_closed' | 'state'>>,
): Promise<boolean> {
  const changed = await touchLobby(tx, lobby);
  const rows = await tx
    .update(lobbies)
    .set({ ...values, changed })
    .where(and(eq(lobbies.lobby_id, lobby.lobby_id), isNull(lobbies.stop_ts)))
    .returning({ lobby_id: lobbies.lobby_id });
  return rows.length > 0;
}

/** Ends a running lobby and its players' visits. False when it has stopped, or when somebody sits where nobody should. */
export async function stopLobby(
  tx: Tx,
  lobby: Pick<LobbyRow, 'lobby_id' | 'namespace_id'>,
  { reason, now, only_if_empty }: { reason: StopReason; now: Date; only_if_empty: boolean },
): Promise<LobbyRow | undefined> {
  const changed = await touchLobby(tx, lobby);
  const [row] = await tx
    .update(lobbies)
    .set({ stop_ts: now, stop_reason: reason, player_count: 0, changed })
    .where(
      and(
        eq(lobbies.lobby_id, lobby.lobby_id),
        isNull(lobbies.stop_ts),
        only_if_empty ? eq(lobbies.player_count, 0) : undefined,
      ),
    )
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

/** Running lobbies whose server is going or gone. */
export async function selectAbandoned(queries: Queries): Promise<LobbyRow[]> {
  return await queries
    .select()
    .from(lobbies)
    .where(and(isNull(lobbies.stop_ts), isEnding(lobbies.server_id)))
    .orderBy(asc(lobbies.create_ts))
    .limit(DUE_MAX);
}

/** Running lobbies that were made before a moment and are not ready yet. */
export async function selectLate(queries: Queries, created_before: Date): Promise<LobbyRow[]> {
  return await queries
    .select()
    .from(lobbies)
    .where(and(isNull(lobbies.stop_ts), isNull(lobbies.ready_ts), lt(lobbies.create_ts, created_before)))
    .orderBy(asc(lobbies.create_ts))
    .limit(DUE_MAX);
}

/** Running lobbies that everybody has left: all, because those that are kept stay in front of those that are not. */
export async function selectIdle(queries: Queries): Promise<LobbyRow[]> {
  return await queries
    .select()
    .from(lobbies)
    .where(and(isNull(lobbies.stop_ts), isNotNull(lobbies.idle_ts), eq(lobbies.player_count, 0)))
    .orderBy(asc(lobbies.idle_ts))
    .limit(LOBBIES_MAX);
}

/** Tells of a change of a lobby; gives the version of its namespace's list. */
async function touchLobby(
  tx: Tx,
  { lobby_id, namespace_id }: Pick<LobbyRow, 'lobby_id' | 'namespace_id'>,
): Promise<number> {
  const list = topics.lobbiesOf(namespace_id);
  const versions = await touch(tx, [list, topics.lobby(lobby_id)]);
  return versions.get(list) ?? 0;
}

/** A row of a statement of our own, read as Drizzle reads those of its statements. */
function toLobbyRow(raw: Record<string, unknown>): LobbyRow {
  const columns = Object.entries(getTableColumns(lobbies));
  const read = columns.map(([name, column]) => [
    name,
    raw[name] === null ? null : column.mapFromDriverValue(raw[name]),
  ]);
  return Object.fromEntries(read);
}
