import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { listServers } from '../support/game.ts';
import { enterTogether, findSeat, seeEachOther } from '../support/lobbies/players.ts';
import { enterRoom, makeRoomGame, READY_SOURCE } from '../support/lobbies/room.ts';
import { findProcessesOf, postgresOf } from '../support/processes.ts';
import { type Home, makeHome } from '../support/program.ts';
import { waitFor } from '../support/wait.ts';

describe('the service is killed', () => {
  let home: Home;
  beforeAll(async () => {
    home = await makeHome({}, { has_prepared_database: true });
  }, 300_000);
  afterAll(async () => {
    await home[Symbol.asyncDispose]();
  }, 300_000);

  test('players stay, the next start adopts their server, and the next find joins them', async () => {
    const program = await home.start();
    const game = await makeRoomGame(program, { max_players: 4 });
    const [first, second] = await enterTogether(program, game);
    const before = await listServers(program, game);
    const [{ id: server_id }] = before;
    const processes = findProcessesOf(server_id);
    const postgres = postgresOf(home.data_directory);

    expect(await program.stop('SIGKILL')).toBe(null);
    await seeEachOther(first, second);

    const next = await home.start();
    await seeEachOther(first, second);
    expect(await listServers(next, game)).toEqual(before);
    expect(findProcessesOf(server_id)).toEqual(processes);
    expect(postgresOf(home.data_directory)).toBe(postgres);

    const third = await enterRoom(await findSeat(next, game));
    expect(third.lobby_id).toBe(first.lobby_id);
    await seeEachOther(first, third);

    // The adopted server still reports its players, so seats from before the kill are freed.
    await Promise.all([first.close(), second.close(), third.close()]);
    await waitFor(
      async () => (await listServers(next, game)).length === 0,
      'the room to end after its last player left',
    );
    await waitFor(() => findProcessesOf(server_id).length === 0, 'its processes to end');
    await next.stop('SIGINT');
  }, 300_000);

  test('SIGTERM leaves game servers and players running; ctrl-C ends them', async () => {
    const program = await home.start();
    const game = await makeRoomGame(program, { max_players: 4 });
    const [first, second] = await enterTogether(program, game);
    const [{ id: server_id }] = await listServers(program, game);
    const processes = findProcessesOf(server_id);
    expect(await program.stop('SIGTERM')).toBe(0);
    // PostgreSQL has ended with the program. The game server runs on, and so does the holder of the port if the service
    // is root.
    const left = home.processes();
    expect(left).toEqual(expect.arrayContaining(processes));
    expect(left).toHaveLength(processes.length + (process.getuid?.() === 0 ? 1 : 0));
    await seeEachOther(first, second);

    const next = await home.start();
    const third = await enterRoom(await findSeat(next, game));
    expect(third.lobby_id).toBe(first.lobby_id);
    expect(findProcessesOf(server_id)).toEqual(processes);
    expect(await next.stop('SIGINT')).toBe(0);
    await Promise.all([first.closed, second.closed, third.closed]);
    expect(home.processes()).toEqual([]);
  }, 300_000);

  test('during a find that creates a lobby: the lobby becomes ready, and the unanswered seat is released', async () => {
    const program = await home.start();
    const game = await makeRoomGame(program, { source: READY_SOURCE, max_players: 4 });
    const unanswered = findSeat(program, game).catch(() => 'unanswered');
    const [{ id: server_id }] = await waitFor(async () => {
      const servers = await listServers(program, game);
      return servers.length > 0 && servers;
    }, 'the server of the new lobby');
    await program.stop('SIGKILL');
    expect(await unanswered).toBe('unanswered');

    const next = await home.start({ settings: { MUSTER_SEAT_TIMEOUT_MS: '3000' } });
    const found = await findSeat(next, game);
    expect(await listServers(next, game)).toMatchObject([{ id: server_id, tags: { lobby_id: found.lobby.lobby_id } }]);
    await waitFor(async () => (await listServers(next, game)).length === 0, 'the lobby to end without players');
    await next.stop('SIGINT');
  }, 300_000);

  test('during many finds: every seat without a player is released, whether its find was answered or not', async () => {
    const settings = { MUSTER_SEAT_TIMEOUT_MS: '1000' };
    const program = await home.start({ settings });
    const game = await makeRoomGame(program, { max_players: 100 });
    let answered = 0;
    // Each loop sends its next find at once, so at any moment some are unanswered.
    const finding = Array.from({ length: 20 }, async () => {
      for (;;) {
        await findSeat(program, game);
        answered += 1;
      }
    });
    const ended = Promise.allSettled(finding);
    await waitFor(() => answered > 50, 'finds to be answered');
    await program.stop('SIGKILL');
    await ended;

    const next = await home.start({ settings });
    await waitFor(async () => (await listServers(next, game)).length === 0, 'every lobby to end without players');
    await next.stop('SIGINT');
  }, 300_000);
});
