import { sql } from 'drizzle-orm';
import { deleteEnded as deleteLobbies } from '../../src/features/lobbies/upkeep/retention.ts';
import { hasLobbyOn } from '../../src/features/lobbies/upkeep/retention-store.ts';
import { removeEnded as removeServers } from '../../src/features/servers/retention.ts';
import type { Database } from '../../src/platform/database/database.ts';
import { copyLobbies } from './lobbies/lobby-copies.ts';

const PLAYERS = 3;
const INTERVAL_MS = 600_000;

interface Ids {
  server_ids: string[];
  lobby_ids: string[];
}

/**
 * Writes copies of a lobby, each with a server, three players, a port, usage, an emptied chunk of a log and topics. The
 * servers ended at a given time; for one of 1970 they still run.
 */
export async function copyHistory(
  { queries }: Database,
  lobby_id: string,
  { copies = 1, ended_at }: { copies?: number; ended_at: Date | null },
): Promise<Ids> {
  const end = ended_at?.toISOString() ?? null;
  const made = await queries.execute<{ server_id: string }>(sql`
    insert into servers
    select (jsonb_populate_record(server, jsonb_build_object(
      'server_id', gen_random_uuid(), 'node_id', gen_random_uuid(), 'ended_at', ${end}::text, 'destroyed_at', ${end}::text))).*
    from lobbies join servers as server using (server_id) cross join generate_series(1, ${copies}::int)
    where lobby_id = ${lobby_id}
    returning server_id`);
  const server_ids = made.map(({ server_id }) => server_id);
  const ours = sql`any(${sql.param(server_ids)}::uuid[])`;
  const from = sql`lobbies as lobby cross join unnest(${sql.param(server_ids)}::uuid[]) as ours (id) where lobby_id = ${lobby_id}`;
  const changes = sql`jsonb_build_object(
    'lobby_id', gen_random_uuid(), 'server_id', ours.id, 'code', null, 'player_count', 0, 'stop_ts', ${end}::text)`;
  await queries.execute(copyLobbies(from, changes));
  const copied = await queries.execute<{ lobby_id: string }>(sql`
    select lobby_id from lobbies where server_id = ${ours} order by lobby_id`);
  const begin_ms = Math.floor((ended_at ?? new Date(0)).getTime() / INTERVAL_MS) * INTERVAL_MS;
  await queries.execute(sql`
    insert into players (player_id, lobby_id, namespace_id, address, create_ts, remove_ts, remove_reason)
    select gen_random_uuid(), lobby_id, namespace_id, '192.0.2.1',
      coalesce(${end}::timestamptz, to_timestamp(0)), ${end}::timestamptz, ${end && 'lobby_stopped'}::text
    from lobbies cross join generate_series(1, ${PLAYERS}::int) where server_id = ${ours}`);
  await queries.execute(sql`
    insert into server_ports (node_id, port, server_id, release_ts)
    select node_id, 26000, server_id, ended_at from servers where server_id = ${ours}`);
  await queries.execute(sql`
    insert into server_meters (server_id, cpu_ms) select server_id, 100 from servers where server_id = ${ours}`);
  // The usage begins in the interval before, as after a pause of the service.
  await queries.execute(sql`
    insert into server_usage (server_id, interval_start, game_id, datacenter_id, cpu_ms, from_ts, until_ts)
    select server_id, start, game_id, datacenter_id, 101, start - interval '7 min', start + interval '3 min'
    from servers cross join (select to_timestamp(${begin_ms}::float8 / 1000) as start) as begun where server_id = ${ours}`);
  await queries.execute(sql`
    insert into server_log_chunks (server_id, stream, first_line, line_count, ts, end_offset, total_bytes, content)
    select server_id, 'std_out', 0, 1, now(), 1, 1, '' from servers where server_id = ${ours}`);
  await queries.execute(sql`
    insert into topics (topic, version)
    select unnest(array['server:' || server_id, 'log:' || server_id || ':std_out', 'lobby:' || lobby_id, 'seats:' || lobby_id]), 7
    from lobbies where server_id = ${ours}`);
  return { server_ids, lobby_ids: copied.map((row) => row.lobby_id) };
}

/** Returns the numbers of the copied rows that are left, by table, without zeros. */
export async function countHistory(
  { queries }: Database,
  { server_ids, lobby_ids }: Ids,
): Promise<Record<string, number>> {
  const among_servers = sql`server_id = any(${sql.param(server_ids)}::uuid[])`;
  const among_lobbies = sql`lobby_id = any(${sql.param(lobby_ids)}::uuid[])`;
  const rows = await queries.execute<{ name: string; count: number }>(sql`
    select * from (
      select 'servers' as name, count(*)::int as count from servers where ${among_servers}
      union all select 'ports', count(*)::int from server_ports where ${among_servers}
      union all select 'usage', count(*)::int from server_usage where ${among_servers}
      union all select 'meters', count(*)::int from server_meters where ${among_servers}
      union all select 'logs', count(*)::int from server_log_chunks where ${among_servers}
      union all select 'lobbies', count(*)::int from lobbies where ${among_lobbies}
      union all select 'players', count(*)::int from players where ${among_lobbies}
      union all select 'topics', count(*)::int from topics
        where split_part(topic, ':', 2) = any(${sql.param([...server_ids, ...lobby_ids])}::text[])
    ) as counted where count > 0`);
  return Object.fromEntries(rows.map(({ name, count }) => [name, count]));
}

/** Removes lobbies and servers that ended before a given time, as the service does once a minute. */
export async function removeHistory(database: Database, before: Date): Promise<void> {
  for await (const _ of deleteLobbies(database, before));
  for await (const _ of removeServers(database, before, hasLobbyOn));
}
