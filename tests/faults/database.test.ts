import { describe, expect, test } from 'bun:test';
import { rename } from 'node:fs/promises';
import { join } from 'node:path';
import { openExternalDatabase } from '../support/database/database.ts';
import { listServers } from '../support/game.ts';
import { enterTogether, findSeat, seeEachOther } from '../support/lobbies/players.ts';
import { enterRoom, makeRoomGame } from '../support/lobbies/room.ts';
import { postgresOf } from '../support/processes.ts';
import { type Home, makeHome } from '../support/program.ts';
import { waitFor } from '../support/wait.ts';

interface Database extends AsyncDisposable {
  home: Home;
  /** Makes the database unreachable until `heal`. */
  lose(): Promise<void>;
  heal(): Promise<void>;
}

describe('the database is lost', () => {
  const CASES = [
    { name: 'the embedded PostgreSQL is killed and cannot be restarted for a while', open: openEmbeddedHome },
    { name: 'the network to the database is cut for a while', open: openExternalHome },
  ];
  for (const { name, open } of CASES) {
    test(`${name}: requests get a 503, players stay, and the service recovers by itself`, async () => {
      await using database = await open();
      const program = await database.home.start();
      const { api } = program;
      const game = await makeRoomGame(program, { max_players: 4 });
      const [first, second] = await enterTogether(program, game);

      await database.lose();
      const ready = await waitFor(async () => {
        const answer = await api.get('/health/ready');
        return answer.status !== 200 && answer;
      }, 'the service to notice');
      expect(ready.status).toBe(503);
      expect(ready.body).toMatchObject({
        code: 'SERVICE_NOT_READY',
        metadata: { reasons: [{ code: 'DATABASE_UNAVAILABLE', message: 'the database does not answer' }] },
      });
      expect((await api.get('/health/live')).status).toBe(200);
      const body = { game_modes: ['default'] };
      const refused = await api.post('/matchmaker/lobbies/find', game.public_token, body);
      expect([refused.status, refused.body.code]).toEqual([503, 'DATABASE_UNAVAILABLE']);
      expect(refused.headers.get('retry-after')).toBe('1');
      await seeEachOther(first, second);

      await database.heal();
      // As many requests at once as there are connections, because each connection recovers by itself.
      await waitFor(async () => {
        const path = `/cloud/games/${game.game_id}`;
        const answers = await Promise.all(Array.from({ length: 20 }, () => api.get(path, program.administrator_token)));
        return answers.every(({ status }) => status === 200);
      }, 'the service to recover');
      const third = await enterRoom(await findSeat(program, game));
      expect(third.lobby_id).toBe(first.lobby_id);
      await seeEachOther(second, third);
      // Notifications arrive again: of deploys, ready rooms, and players that leave.
      const other_game = await makeRoomGame(program, { max_players: 4 });
      await enterTogether(program, other_game);
      await Promise.all([first.close(), second.close(), third.close()]);
      await waitFor(async () => (await listServers(program, game)).length === 0, 'the room to end');
    }, 300_000);
  }
});

async function openEmbeddedHome(): Promise<Database> {
  const home = await makeHome();
  const files = join(home.data_directory, 'postgres');
  const program = async () => {
    for await (const path of new Bun.Glob('*/bin/postgres*').scan(files)) return join(files, path);
    throw new Error('there is no PostgreSQL');
  };
  return {
    home,
    async lose() {
      const path = await program();
      await rename(path, `${path}.hidden`);
      process.kill(postgresOf(home.data_directory), 'SIGKILL');
    },
    async heal() {
      const path = await program();
      await rename(path, path.replace('.hidden', ''));
    },
    [Symbol.asyncDispose]: () => home[Symbol.asyncDispose](),
  };
}

async function openExternalHome(): Promise<Database> {
  const { url, proxy, ...database } = await openExternalDatabase();
  const home = await makeHome({ DATABASE_URL: url });
  return {
    home,
    lose: proxy.cut,
    heal: proxy.heal,
    async [Symbol.asyncDispose]() {
      await home[Symbol.asyncDispose]();
      await database[Symbol.asyncDispose]();
    },
  };
}
