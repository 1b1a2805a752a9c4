import { expect, test } from 'bun:test';
import { join } from 'node:path';
import { sql } from 'drizzle-orm';
import { openDatabase } from '../../src/platform/database/database.ts';
import { deploy } from '../support/game.ts';
import { makeRoomGame } from '../support/lobbies/room.ts';
import { IS_LISTENER } from '../support/network/listeners.ts';
import { type Home, makeHome } from '../support/program.ts';
import { waitFor } from '../support/wait.ts';

test('late notifications: a process uses its own changes at once', async () => {
  await using home = await makeHome({}, { has_prepared_database: true });
  const program = await home.start();
  const game = await makeRoomGame(program);
  const search = { game_modes: ['arena'], prevent_auto_create_lobby: true };
  const find = () => program.api.post('/matchmaker/lobbies/find', game.public_token, search);
  expect((await find()).body.code).toBe('MATCHMAKER_GAME_MODE_NOT_FOUND');

  const listener = await findListener(home);
  process.kill(listener, 'SIGSTOP');
  const docker = { image_id: game.build_id, ports: {} };
  await deploy(program.api, game, { game_modes: { arena: {} }, max_players: 4, docker });
  expect((await find()).body.code).toBe('MATCHMAKER_NO_AVAILABLE_LOBBIES');
  process.kill(listener, 'SIGCONT');
}, 300_000);

/** Returns the PostgreSQL process that sends the service its notifications. */
async function findListener({ data_directory }: Home): Promise<number> {
  const path = join(data_directory, 'postgres/socket/.s.PGSQL.5432');
  await using database = openDatabase({ path, user: 'muster', database: 'postgres' }, 1);
  const { pid } = await waitFor(async () => {
    const [row] = await database.queries.execute<{ pid: number }>(
      sql`select pid from pg_stat_activity where ${IS_LISTENER}`,
    );
    return row;
  }, 'the service to listen');
  return pid;
}
