import { sql } from 'drizzle-orm';
import { takeSeats } from '../../../src/features/lobbies/matchmaking/rounds/seats-store.ts';
import { topics } from '../../../src/features/topics.ts';
import { after } from '../../../src/platform/clock.ts';
import type { Database, Queries } from '../../../src/platform/database/database.ts';
import { touch } from '../../../src/platform/watch/versions.ts';

/** Permits lobbies without a namespace and a server in a database, for tests of lobbies and players only. */
export async function permitBareLobbies({ queries }: Database): Promise<void> {
  await queries.execute(sql`
    alter table lobbies drop constraint lobbies_namespace_id_namespaces_namespace_id_fk,
      drop constraint lobbies_server_id_servers_server_id_fk`);
}

interface BareLobbies {
  namespace_id: string;
  count?: number;
  seats: number;
}

/** Creates empty lobbies that are ready. Returns their ids. */
export async function createBareLobbies(
  database: Database,
  { namespace_id, count = 1, seats }: BareLobbies,
): Promise<string[]> {
  const lobby_ids = Array.from({ length: count }, () => Bun.randomUUIDv7());
  await database.transact(async (tx) => {
    await touch(tx, [topics.lobbiesOf(namespace_id)]);
    await tx.execute(sql`
      insert into lobbies (lobby_id, game_id, namespace_id, version_id, game_mode, region, server_id, max_players_normal,
        max_players_direct, max_players_party, player_count, tags, is_closed, ports, create_ts, ready_ts, idle_ts, changed)
      select lobby_id, gen_random_uuid(), ${namespace_id}, gen_random_uuid(), 'default', 'local', gen_random_uuid(),
        ${seats}, ${seats}, ${seats}, 0, '{}', false,
        '{"default": {"protocol": "http", "routing": "game_guard", "public_port": 20000}}', now(), now(), now(), 0
      from unnest(${sql.param(lobby_ids)}::uuid[]) as lobby_id`);
  });
  return lobby_ids;
}

/** Takes a seat in each lobby, for a player of its own. Returns the players. */
export async function takeOneEach(queries: Queries, namespace_id: string, lobby_ids: string[]): Promise<string[]> {
  const now = new Date();
  const seats = lobby_ids.map((lobby_id, request_number) => {
    const player_id = Bun.randomUUIDv7();
    const claim = { client: player_id, players_max: 1, request_number, ticket: null };
    return { player_id, lobby_id, namespace_id, kind: 'join', address: '', ...claim } as const;
  });
  const { accepting } = await takeSeats(queries, seats, { now, deadline: after(now, 3_600_000) });
  if (accepting.length !== lobby_ids.length) throw new Error('not all lobbies have a free seat');
  return seats.map(({ player_id }) => player_id);
}
