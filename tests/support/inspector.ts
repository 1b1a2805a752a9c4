import { sql } from 'drizzle-orm';
import { openDatabase } from '../../src/platform/database/database.ts';
import { copyLobbies } from './lobbies/lobby-copies.ts';
import type { TestService } from './service.ts';
import { waitFor } from './wait.ts';

export type Inspector = ReturnType<typeof openInspector>;

/** Reads from a service's database what no answer shows, such as seats, and whether all counts agree with them. */
export function openInspector({ database_address }: Pick<TestService, 'database_address'>) {
  const database = openDatabase(database_address, 2);
  const { queries } = database;

  return {
    /** Returns the running lobbies of a namespace, oldest first. */
    async lobbiesOf(namespace_id: string) {
      const rows = await queries.execute<{ lobby_id: string; player_count: number; is_ready: boolean }>(sql`
        select lobby_id, player_count, ready_ts is not null as is_ready from lobbies
        where namespace_id = ${namespace_id} and stop_ts is null order by create_ts, lobby_id`);
      return [...rows];
    },
    /** Returns how many players each running lobby of a namespace counts, oldest first. */
    async playerCounts(namespace_id: string): Promise<number[]> {
      return (await this.lobbiesOf(namespace_id)).map(({ player_count }) => player_count);
    },
    /** Returns how many players a lobby counts; undefined if it does not run. */
    async playerCount(lobby_id: string): Promise<number | undefined> {
      const [row] = await queries.execute<{ player_count: number }>(sql`
        select player_count from lobbies where lobby_id = ${lobby_id} and stop_ts is null`);
      return row?.player_count;
    },
    /** Returns why a lobby stopped; undefined while it runs. */
    async stopReason(lobby_id: string): Promise<string | undefined> {
      const rows = await queries.execute<{ stop_reason: string | null }>(sql`
        select stop_reason from lobbies where lobby_id = ${lobby_id}`);
      return rows[0]?.stop_reason ?? undefined;
    },
    /** Returns why players of a namespace lost their seats, in the order of their arrival. */
    async removeReasons(namespace_id: string): Promise<string[]> {
      const rows = await queries.execute<{ remove_reason: string }>(sql`
        select remove_reason from players
        where namespace_id = ${namespace_id} and remove_ts is not null order by create_ts, player_id`);
      return rows.map(({ remove_reason }) => remove_reason);
    },
    /**
     * Returns lobbies whose player count differs from their seats or exceeds their maximum, wrong counts of lobbies, and
     * clients with more players than their limit; of one namespace, or of all.
     */
    async faults(namespace_id?: string): Promise<string[]> {
      const within = namespace_id === undefined ? sql`` : sql`and namespace_id = ${namespace_id}`;
      const rows = await queries.execute<{ fault: string }>(sql`
        select 'lobby ' || lobby_id || ' counts ' || player_count || ' and seats ' || seated as fault
        from lobbies cross join lateral (
          select count(*) as seated from players where players.lobby_id = lobbies.lobby_id and remove_ts is null
        ) as sitting
        where (player_count <> seated or seated > greatest(max_players_normal, max_players_direct, max_players_party))
          ${within}
        union all
        select 'namespace ' || namespace_id || ' counts ' || lobby_count || ' lobbies and has ' || running
        from lobby_counts cross join lateral (
          select count(*) as running from lobbies
          where lobbies.namespace_id = lobby_counts.namespace_id and stop_ts is null
        ) as there
        where lobby_count <> running ${within}
        union all
        select 'client ' || client || ' has ' || seated || ' players and may have ' || max_players_per_client
        from (
          select namespace_id, client, count(*) as seated, count(client_number) as numbered
          from players where remove_ts is null group by namespace_id, client
        ) as clients join namespaces using (namespace_id)
        where (seated > max_players_per_client or numbered <> seated) ${within}`);
      return rows.map(({ fault }) => fault);
    },
    /** Returns the number of deadlocks that PostgreSQL has resolved. */
    async deadlocks(): Promise<number> {
      const [row] = await queries.execute<{ deadlocks: string }>(sql`
        select deadlocks from pg_stat_database where datname = current_database()`);
      return Number(row?.deadlocks);
    },
    /** Returns the numbers of rows and the sum of the versions of all lobbies. Every change of them changes one of these. */
    async measure(): Promise<Record<string, unknown>> {
      const [row = {}] = await queries.execute(sql`
        select (select count(*) from lobbies) as lobbies, (select count(*) from players) as players,
          (select count(*) from servers) as servers, (select count(*) from lobby_counts) as lobby_counts,
          (select sum(version) from topics where topic like 'lobb%') as versions`);
      return row;
    },
    /** Waits until the count of players of each game is current: a loop writes it every few seconds. */
    async waitForPlayerCounts(): Promise<void> {
      await waitFor(async () => {
        const rows = await queries.execute(sql`
          select game_id from games where player_count <> (
            select coalesce(sum(player_count), 0) from lobbies where lobbies.game_id = games.game_id and stop_ts is null)
          limit 1`);
        return rows.length === 0;
      }, 'the players of all games to be counted');
    },
    /** Writes copies of a lobby that were always empty into the database, with the game modes in turn. */
    async copyAsEmpty(lobby_id: string, game_modes: string[], copies: number): Promise<void> {
      const from = sql`lobbies as lobby cross join generate_series(1, ${copies}::int) as number where lobby_id = ${lobby_id}`;
      const changes = sql`jsonb_build_object(
        'lobby_id', gen_random_uuid(), 'code', null, 'player_count', 0, 'idle_ts', create_ts,
        'game_mode', (${sql.param(game_modes)}::text[])[1 + number % ${game_modes.length}::int])`;
      await queries.execute(copyLobbies(from, changes));
    },
    /** Blocks seats and leaves in a namespace until the returned function is called. */
    async holdSeats(namespace_id: string): Promise<() => Promise<void>> {
      const held = Promise.withResolvers<void>();
      const end = Promise.withResolvers<void>();
      const holding = database.transact(async (tx) => {
        await tx.execute(sql`select from topics where topic = ${`lobbies-of:${namespace_id}`} for update`);
        held.resolve();
        await end.promise;
      });
      await held.promise;
      return async () => {
        end.resolve();
        await holding;
      };
    },
    [Symbol.asyncDispose]: () => database[Symbol.asyncDispose](),
  };
}
