import { join } from 'node:path';
import { sql } from 'drizzle-orm';
import { touchLobby } from '../src/features/lobbies/store.ts';
import { topics } from '../src/features/topics.ts';
import { type Database, openDatabase } from '../src/platform/database/database.ts';
import { touch } from '../src/platform/watch/versions.ts';
import { connectionOf } from '../tests/support/database/embedded.ts';
import type { TestGame } from '../tests/support/game.ts';
import { copyLobbies } from '../tests/support/lobbies/lobby-copies.ts';
import { makeRoomGame, READY_SOURCE } from '../tests/support/lobbies/room.ts';
import { postgresOf } from '../tests/support/processes.ts';
import { commandOf, makeHome, type Program } from '../tests/support/program.ts';

/** Prime, so that successive changes are of lobbies far from each other. */
const STRIDE = 7_919;

/** A service from source with a namespace of many lobbies, of which one is real. */
export interface ManyLobbies {
  program: Program;
  database: Database;
  /** How other processes reach the database. */
  connection: ReturnType<typeof connectionOf>;
  database_pid: number;
  game: TestGame;
  lobby_ids: string[];
}

export async function openManyLobbies(opened: AsyncDisposableStack, count: number): Promise<ManyLobbies> {
  // The player of the real lobby never connects, and keeps the seat.
  const settings = { MUSTER_DEMO: 'off', MUSTER_SEAT_TIMEOUT_MS: '3600000' };
  const home = opened.use(await makeHome(settings));
  const program = await home.start({ command: commandOf('source') });
  const connection = connectionOf({ directory: join(home.data_directory, 'postgres') });
  const database = opened.use(openDatabase(connection, 2));
  const game = await makeRoomGame(program, { source: READY_SOURCE, max_players: 64 });
  const find = { token: game.public_token, body: { game_modes: ['default'] } };
  await program.api.ok('POST', '/matchmaker/lobbies/find', find);
  const copied = sql`
    (select lobbies as lobby from lobbies where stop_ts is null limit 1) as one, generate_series(1, ${count - 1}::int)`;
  const changes = sql`jsonb_build_object('lobby_id', gen_random_uuid(), 'code', null, 'idle_ts', null,
    'seats_check_ts', now() + interval '1 day')`;
  await database.transact(async (tx) => {
    await touch(tx, [topics.lobbiesOf(game.namespace_id)]);
    await tx.execute(copyLobbies(copied, changes));
  });
  await database.queries.execute(sql`analyze`);
  const ids = await database.queries.execute<{ lobby_id: string }>(sql`select lobby_id from lobbies limit ${count}`);
  const lobby_ids = ids.map(({ lobby_id }) => lobby_id);
  return { program, database, connection, database_pid: postgresOf(home.data_directory), game, lobby_ids };
}

/** Closes or opens one lobby after another, at a rate, for some seconds. Returns how many. */
export async function changeLobbies(
  { database, game, lobby_ids }: Pick<ManyLobbies, 'database' | 'game' | 'lobby_ids'>,
  { per_second, seconds }: { per_second: number; seconds: number },
): Promise<number> {
  const { namespace_id } = game;
  const begun = performance.now();
  const end = begun + seconds * 1_000;
  let changes = 0;
  for (; performance.now() < end; changes += 1) {
    const lobby_id = lobby_ids[(changes * STRIDE) % lobby_ids.length] ?? '';
    await database.transact(async (tx) => {
      const changed = await touchLobby(tx, { lobby_id, namespace_id });
      await tx.execute(sql`
        update lobbies set is_closed = not is_closed, changed = ${changed} where lobby_id = ${lobby_id}`);
    });
    await Bun.sleep(begun + ((changes + 1) * 1_000) / per_second - performance.now());
  }
  return changes;
}
