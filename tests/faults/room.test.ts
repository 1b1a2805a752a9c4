import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test';
import type { TestGame } from '../support/game.ts';
import { enterTogether, findSeat, seeEachOther } from '../support/lobbies/players.ts';
import { enterRoom, makeRoomGame, ROOM_SOURCE } from '../support/lobbies/room.ts';
import { type Home, makeHome, type Program } from '../support/program.ts';
import { waitFor } from '../support/wait.ts';

const CONNECTED = '/matchmaker/players/connected';

let home: Home;
let program: Program;
beforeAll(async () => {
  home = await makeHome({}, { has_prepared_database: true });
}, 300_000);
beforeEach(async () => {
  const is_running = await fetch(`${home.url}/health/live`).then(
    () => true,
    () => false,
  );
  if (!is_running) program = await home.start();
}, 300_000);
afterAll(async () => {
  await home[Symbol.asyncDispose]();
}, 300_000);

test('room: while the service is stopped, players stay and move; seats of those who left become free later', async () => {
  const game = await makeRoomGame(program);
  const [staying, other] = await enterTogether(program, game);
  const leaving = await enterRoom(await findSeat(program, game));
  let is_cut = false;
  void staying.closed.then(() => {
    is_cut = true;
  });

  await program.stop('SIGKILL');
  await leaving.close();
  await waitFor(() => Object.keys(staying.positions).length === 2, 'the third player to disappear');
  await seeEachOther(staying, other);

  program = await home.start();
  await waitFor(async () => {
    const [lobby] = await listLobbies(game);
    return lobby?.lobby_id === staying.lobby_id && lobby.total_player_count === 2;
  }, 'the seat of the player who left to be free');
  expect(is_cut).toBe(false);
}, 300_000);

test('room: a player who connects while the service is stopped is admitted once it is back', async () => {
  const game = await makeRoomGame(program);
  const first = await enterRoom(await findSeat(program, game));
  const seat = await findSeat(program, game);
  await program.stop('SIGKILL');
  const entering = enterRoom(seat);
  program = await home.start();
  await seeEachOther(first, await entering);
}, 300_000);

test('room: a player whose answer to players/connected was lost keeps the seat', async () => {
  await using forwarder = forwardAllButFirstAnswer(CONNECTED);
  const game = await makeRoomGame(program, {
    source: `process.env.SERVICE_API_ENDPOINT = '${forwarder.url}';\n${ROOM_SOURCE}`,
  });
  const player = await enterRoom(await findSeat(program, game));
  expect(forwarder.calls.filter((path) => path === CONNECTED)).toHaveLength(2);
  expect(forwarder.lostStatus()).toBe(200);
  expect((await listLobbies(game))[0]?.total_player_count).toBe(1);
  // The retry does not make the token valid for a second player.
  await expect(enterRoom({ lobby: player, ports: { game: player }, player })).rejects.toThrow('refuses the player');
});

test('room: a message without a position disconnects only its player', async () => {
  const game = await makeRoomGame(program);
  const [good, bad] = await enterTogether(program, game);
  for (const text of ['bad', 'null', '{"x":"1","y":2}']) {
    const one = text === 'bad' ? bad : await enterRoom(await findSeat(program, game));
    one.socket.send(text);
    await one.closed;
  }
  await seeEachOther(good, await enterRoom(await findSeat(program, game)));
});

async function listLobbies({ public_token: token }: TestGame) {
  const { lobbies } = await program.api.ok('GET', '/matchmaker/lobbies/list', { token });
  return lobbies as { lobby_id: string; total_player_count: number }[];
}

/** Forwards every call to the service, and loses the first answer on one path. */
function forwardAllButFirstAnswer(lost_path: string) {
  const calls: string[] = [];
  let lost_status: number | undefined;
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request) {
      const { pathname } = new URL(request.url);
      const is_lost = pathname === lost_path && !calls.includes(lost_path);
      calls.push(pathname);
      const { method, headers } = request;
      const answer = await fetch(program.url + pathname, { method, headers, body: await request.text() });
      if (!is_lost) return new Response(await answer.text(), { status: answer.status });
      lost_status = answer.status;
      return new Response('the answer was lost', { status: 502 });
    },
  });
  return {
    url: server.url.origin,
    calls,
    lostStatus: () => lost_status,
    [Symbol.asyncDispose]: () => server.stop(true),
  };
}
