import { join } from 'node:path';
import { sql } from 'drizzle-orm';
import { makePostgresDirectory } from '../../tests/support/database/embedded.ts';
import { processorSeconds } from '../meter.ts';

/** Each has room for all players of the run, and one who never leaves, so that it never becomes idle. */
const LOBBIES = 1_000;
const LOBBY_PLAYERS_MAX = 100_000;
/** Rounds before those that are measured, which write the first images of pages into the log. */
const FIRST_ROUNDS = 10;
const DEADLINES = { query_ms: 120_000, pool_wait_ms: 2_000, transaction_ms: 120_000 };
const SEAT_MS = 3_600_000;

const STEPS = ['seat', 'connect', 'leave'] as const;

/** The cost of one step of a visit to PostgreSQL. */
export type Cost = { seconds: number; log_bytes: number };
export type VisitCost = Record<(typeof STEPS)[number], Cost>;

export interface Checkout {
  /** Lets players visit in rounds of a size, and returns the cost of one visit. */
  visit(rounds: number, size: number): Promise<VisitCost>;
}

/** Opens the stores of a checkout on an embedded PostgreSQL of its own, whose log is not synced. */
export async function openCheckout(
  opened: AsyncDisposableStack,
  root: string,
  { ended_visits }: { ended_visits: number },
): Promise<Checkout> {
  const importFrom = (path: string) => import(join(root, 'src', path));
  const { openDatabase }: typeof import('../../src/platform/database/database.ts') = await importFrom(
    'platform/database/database.ts',
  );
  const { migrateDatabase }: typeof import('../../src/platform/database/migrate.ts') =
    await importFrom('platform/database/migrate.ts');
  const { takeSeats }: typeof import('../../src/features/lobbies/matchmaking/rounds/seats-store.ts') = await importFrom(
    'features/lobbies/matchmaking/rounds/seats-store.ts',
  );
  const { setConnected, setDisconnected }: typeof import('../../src/features/lobbies/players-store.ts') =
    await importFrom('features/lobbies/players-store.ts');
  const directory = opened.use(await makePostgresDirectory());
  const server = opened.use(await directory.open());
  const database = opened.use(openDatabase(server.connection, 2, DEADLINES));
  await migrateDatabase(database);
  const { queries } = database;
  // Nothing but the visits writes to the log.
  for (const setting of ["checkpoint_timeout = '1h'", "max_wal_size = '8GB'", 'autovacuum = off']) {
    await queries.execute(sql.raw(`alter system set ${setting}`));
  }
  await queries.execute(sql`select pg_reload_conf()`);
  const namespace_id = crypto.randomUUID();
  await database.transact(async (tx) => {
    // Without the rows that foreign keys require.
    await tx.execute(sql`set local session_replication_role = replica`);
    await tx.execute(sql`set local statement_timeout = 0`);
    await tx.execute(sql`
      insert into lobbies (
        lobby_id, game_id, namespace_id, version_id, game_mode, region, server_id, max_players_normal, max_players_direct,
        max_players_party, player_count, tags, code, is_closed, ports, create_ts, ready_ts, changed
      )
      select gen_random_uuid(), gen_random_uuid(), ${namespace_id}::uuid, gen_random_uuid(), 'default', 'local',
        gen_random_uuid(), ${LOBBY_PLAYERS_MAX}::int, ${LOBBY_PLAYERS_MAX}::int, ${LOBBY_PLAYERS_MAX}::int, 1, '{}',
        number::text, false, '{"game":{"protocol":"tcp","routing":"host","port":26000}}', now(), now(), number
      from generate_series(1, ${LOBBIES}::int) as number`);
    await tx.execute(sql`
      insert into players
        (player_id, lobby_id, namespace_id, address, client, create_ts, connect_ts, remove_ts, remove_reason)
      select gen_random_uuid(), gen_random_uuid(), ${namespace_id}::uuid, '11.0.0.1', '11.0.0.1', now(), now(), now(),
        'disconnected'
      from generate_series(1, ${ended_visits}::int)`);
  });
  await queries.execute(sql`vacuum analyze`);
  const lobbies = await queries.execute<{ lobby_id: string }>(sql`select lobby_id from lobbies order by lobby_id`);
  const connections = {
    seat: database.openDedicatedConnection(),
    connect: database.openDedicatedConnection(),
    leave: database.openDedicatedConnection(),
  };
  const pids = new Map<string, number>();
  for (const step of STEPS) {
    const [row] = await connections[step].execute<{ pid: number }>(sql`select pg_backend_pid() as pid`);
    pids.set(step, row?.pid ?? 0);
  }
  let visitors = 0;
  let round_count = 0;

  async function readCost(step: keyof VisitCost): Promise<Cost> {
    const [row] = await queries.execute<{ bytes: string }>(sql`
      select pg_current_wal_insert_lsn() - '0/0'::pg_lsn as bytes`);
    return { seconds: processorSeconds(pids.get(step) ?? 0), log_bytes: Number(row?.bytes) };
  }

  /** Runs a step for all players of a round, and returns its cost. */
  async function measureStep(step: keyof VisitCost, size: number, work: () => Promise<number>): Promise<Cost> {
    const before = await readCost(step);
    const done = await work();
    if (done !== size) throw new Error(`${step}: ${done} of ${size} players`);
    const after = await readCost(step);
    return { seconds: after.seconds - before.seconds, log_bytes: after.log_bytes - before.log_bytes };
  }

  async function visitOnce(size: number): Promise<VisitCost> {
    const now = new Date();
    const deadline = new Date(now.getTime() + SEAT_MS);
    // Two rounds in succession have the same lobby, because finds fill the fullest one.
    const lobby_id = lobbies[Math.floor(round_count / 2) % lobbies.length]?.lobby_id ?? '';
    round_count += 1;
    const seats = Array.from({ length: size }, (_, request_number) => {
      visitors += 1;
      const address = `10.${(visitors >> 16) & 255}.${(visitors >> 8) & 255}.${visitors & 255}`;
      const client = { client: address, players_max: 8, ticket: null };
      return {
        player_id: Bun.randomUUIDv7(),
        lobby_id,
        namespace_id,
        kind: 'find',
        address,
        // The name of the number in older checkouts.
        party: request_number,
        request_number,
        ...client,
      } as const;
    });
    const player_ids = seats.map(({ player_id }) => player_id);
    return {
      seat: await measureStep('seat', size, async () => {
        const { accepting, over_limit } = await takeSeats(connections.seat, [...seats], { now, deadline });
        return accepting.length === 1 && over_limit.length === 0 ? size : 0;
      }),
      connect: await measureStep('connect', size, async () => {
        return (await setConnected(connections.connect, [...seats], now)).size;
      }),
      leave: await measureStep('leave', size, async () => {
        return (await setDisconnected(connections.leave, player_ids, now)).size;
      }),
    };
  }

  return {
    async visit(rounds, size) {
      await queries.execute(sql`checkpoint`);
      for (let round = 0; round < FIRST_ROUNDS; round += 1) await visitOnce(size);
      const costs: VisitCost[] = [];
      for (let round = 0; round < rounds; round += 1) costs.push(await visitOnce(size));
      const mean = (step: keyof VisitCost, key: keyof Cost) =>
        costs.reduce((sum, cost) => sum + cost[step][key], 0) / (rounds * size);
      const meanOf = (step: keyof VisitCost) => ({
        seconds: mean(step, 'seconds'),
        log_bytes: mean(step, 'log_bytes'),
      });
      return { seat: meanOf('seat'), connect: meanOf('connect'), leave: meanOf('leave') };
    },
  };
}
