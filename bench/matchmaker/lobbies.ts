import { sql } from 'drizzle-orm';
import { removePlayers } from '../../src/features/lobbies/players-store.ts';
import { topics } from '../../src/features/topics.ts';
import type { Database, Tx } from '../../src/platform/database/database.ts';
import { touch } from '../../src/platform/watch/versions.ts';
import { copyLobbies } from '../../tests/support/lobbies/lobby-copies.ts';

export const SEATS_PER_LOBBY = 100;

/**
 * The running lobbies of a namespace. All but the first are written into the database, because starting thousands of
 * servers would take too long. Each has a server of its own, as if another machine ran it.
 */
export interface Lobbies {
  ids: string[];
  /** Ends all visits, and leaves this many lobbies with this many seats each. */
  empty(wanted: { lobbies: number; seats?: number }): Promise<void>;
}

export function openLobbies(database: Database, namespace_id: string, first: string): Lobbies {
  const ids = [first];
  return {
    ids,
    async empty({ lobbies, seats = SEATS_PER_LOBBY }) {
      const added = Array.from({ length: Math.max(0, lobbies - ids.length) }, () => Bun.randomUUIDv7());
      const surplus = ids.splice(lobbies);
      await transactAtLength(database, async (tx) => {
        const how = { reason: 'disconnected', now: new Date() } as const;
        await removePlayers(tx, namespace_id, sql`true`, how);
        await addLobbies(tx, first, added);
        const list = topics.lobbiesOf(namespace_id);
        const version = (await touch(tx, [list])).get(list) ?? 0;
        await stopLobbies(tx, surplus, version);
        await refreshLobbies(tx, namespace_id, { seats, version });
      });
      ids.push(...added);
      for (const table of ['lobbies', 'players']) await database.queries.execute(sql.raw(`vacuum analyze ${table}`));
    },
  };
}

/** Writes visits of one player each that ended during the last day. Returns the size of the table of players. */
export async function addEndedVisits(
  database: Database,
  { namespace_id, lobby_ids, count }: { namespace_id: string; lobby_ids: string[]; count: number },
): Promise<string> {
  await transactAtLength(database, async (tx) => {
    await tx.execute(sql`
      insert into players
        (player_id, lobby_id, namespace_id, address, client, create_ts, connect_ts, remove_ts, remove_reason)
      select uuidv7(-age), (${sql.param(lobby_ids)}::uuid[])[1 + number % ${lobby_ids.length}::int], ${namespace_id}::uuid,
        address, address, now() - age, now() - age + interval '2 seconds', now() - age + interval '10 minutes',
        'disconnected'
      from (
        select number, format('11.%s.%s.%s', number >> 16, number >> 8 & 255, number & 255) as address,
          interval '1 day' - number * interval '85000 seconds' / ${count}::int as age
        from generate_series(1, ${count}::int) as number
      ) as visits`);
  });
  await database.queries.execute(sql`vacuum analyze players`);
  const [row] = await database.queries.execute<{ size: string }>(sql`
    select pg_size_pretty(pg_total_relation_size('players')) as size`);
  return row?.size ?? '';
}

/** Adds lobbies like another one, with servers like its server, and counts them. */
async function addLobbies(tx: Tx, like: string, ids: string[]): Promise<void> {
  const made = sql`unnest(${sql.param(ids)}::uuid[]) as made`;
  await tx.execute(sql`
    insert into servers select copy.* from lobbies join servers as server using (server_id), ${made},
      lateral jsonb_populate_record(server, jsonb_build_object('server_id', made, 'node_id', ${OTHER_MACHINE}::text)) as copy
    where lobby_id = ${like}`);
  const changes = sql`jsonb_build_object('lobby_id', made, 'server_id', made, 'code', null)`;
  await tx.execute(copyLobbies(sql`lobbies as lobby, ${made} where lobby.lobby_id = ${like}`, changes));
}

async function stopLobbies(tx: Tx, ids: string[], version: number): Promise<void> {
  await tx.execute(sql`
    update lobbies set stop_ts = now(), stop_reason = 'removed', changed = ${version}
    where lobby_id = any(${sql.param(ids)}::uuid[])`);
}

/** Lets the service read all lobbies of a namespace again, as open ones that no loop ends. */
async function refreshLobbies(
  tx: Tx,
  namespace_id: string,
  { seats, version }: { seats: number; version: number },
): Promise<void> {
  await tx.execute(sql`
    update lobbies set changed = ${version}, idle_ts = null,
      max_players_normal = ${seats}, max_players_direct = ${seats}, max_players_party = ${seats}
    where namespace_id = ${namespace_id} and stop_ts is null`);
  await tx.execute(sql`
    update lobby_counts set lobby_count = (
      select count(*) from lobbies where namespace_id = ${namespace_id} and stop_ts is null
    ) where namespace_id = ${namespace_id}`);
}

/** Runs a transaction of any length. */
async function transactAtLength(database: Database, work: (tx: Tx) => Promise<void>): Promise<void> {
  await database.transact(async (tx) => {
    await tx.execute(sql`set local statement_timeout = 0`);
    await work(tx);
  });
}

const OTHER_MACHINE = crypto.randomUUID();
