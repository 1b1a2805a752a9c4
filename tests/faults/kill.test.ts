import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { listServers } from '../support/game.ts';
import { enterTogether, findSeat, seeEachOther } from '../support/players.ts';
import { findProcessesOf, postgresOf } from '../support/processes.ts';
import { type Home, makeHome } from '../support/program.ts';
import { enterRoom, makeRoomGame, QUIET_SOURCE } from '../support/room.ts';
import { waitFor } from '../support/wait.ts';

describe('the service is killed', () => {
  let home: Home;
  beforeAll(async () => {
    home = await makeHome();
  }, 90_000);
  afterAll(async () => {
    await home[Symbol.asyncDispose]();
  }, 90_000);

  test('players stay, the next start adopts their server, the next find joins them', async () => {
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

    // The server that was adopted still tells of its players: seats that were taken before are free again.
    await Promise.all([first.close(), second.close(), third.close()]);
    await waitFor(async () => (await listServers(next, game)).length === 0, 'the room to end after the last has left');
    await waitFor(() => findProcessesOf(server_id).length === 0, 'its processes to end');
    await next.stop('SIGINT');
  }, 90_000);

  test('SIGTERM leaves game servers and players where they are; ctrl-C ends them', async () => {
    const program = await home.start();
    const game = await makeRoomGame(program, { max_players: 4 });
    const [first, second] = await enterTogether(program, game);
    const [{ id: server_id }] = await listServers(program, game);
    const processes = findProcessesOf(server_id);
    expect(await program.stop('SIGTERM')).toBe(0);
    // PostgreSQL has gone with the program, the game server has not, nor has what keeps the port where we are root.
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
  }, 90_000);

  test('in the middle of a find that makes a lobby: the lobby gets ready, and a seat that nobody knows of is not kept', async () => {
    const program = await home.start();
    const game = await makeRoomGame(program, { source: QUIET_SOURCE, max_players: 4 });
    const unanswered = findSeat(program, game).catch(() => 'unanswered');
    const [{ id: server_id }] = await waitFor(async () => {
      const servers = await listServers(program, game);
      return servers.length > 0 && servers;
    }, 'a server to be wanted');
    await program.stop('SIGKILL');
    expect(await unanswered).toBe('unanswered');

    const next = await home.start({ settings: { MUSTER_SEAT_TIMEOUT_MS: '1000' } });
    const found = await findSeat(next, game);
    expect(await listServers(next, game)).toMatchObject([{ id: server_id, tags: { lobby_id: found.lobby.lobby_id } }]);
    await waitFor(async () => (await listServers(next, game)).length === 0, 'the lobby to end, for nobody came');
    await next.stop('SIGINT');
  }, 90_000);

  test('in the middle of many finds: no seat outlives its time, whether it was told of or not', async () => {
    const settings = { MUSTER_SEAT_TIMEOUT_MS: '1000' };
    const program = await home.start({ settings });
    const game = await makeRoomGame(program, { max_players: 100 });
    let answered = 0;
    // Each goes on as long as it is answered: at any moment there are finds that are not.
    const asking = Array.from({ length: 20 }, async () => {
      for (;;) {
        await findSeat(program, game);
        answered += 1;
      }
    });
    const ended = Promise.allSettled(asking);
    await waitFor(() => answered > 50, 'finds to be answered');
    await program.stop('SIGKILL');
    await ended;

    const next = await home.start({ settings });
    await waitFor(async () => (await listServers(next, game)).length === 0, 'every lobby to end, for nobody came');
    await next.stop('SIGINT');
  }, 90_000);
});
