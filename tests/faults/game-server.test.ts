import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { sessionOf } from '../../src/platform/system/processes.ts';
import { openExternalDatabase } from '../support/database/database.ts';
import { listServers, type TestGame } from '../support/game.ts';
import { enterTogether, findSeat, seeEachOther } from '../support/lobbies/players.ts';
import { enterRoom, makeRoomGame } from '../support/lobbies/room.ts';
import { findProcessesOf } from '../support/processes.ts';
import { type Home, makeHome, type Program } from '../support/program.ts';
import { waitFor } from '../support/wait.ts';

describe('game servers are killed:', () => {
  const opened = new AsyncDisposableStack();
  let home: Home;
  let program: Program;
  beforeAll(async () => {
    home = await openHome(opened);
    program = await home.start();
  }, 300_000);
  afterAll(async () => {
    await opened.disposeAsync();
  }, 300_000);

  const KILLED = '[muster] the server was ended by the signal SIGKILL (it was killed)';
  const LOST = '[muster] the process was lost: the machine restarted, or another program ended it';
  const CASES = [
    { what: 'the server itself', isKilled: (pid: number) => sessionOf(pid) !== pid, notes: [KILLED] },
    { what: 'the shell that started it', isKilled: (pid: number) => sessionOf(pid) === pid, notes: [LOST] },
    { what: 'all its processes', isKilled: () => true, notes: [LOST] },
  ];
  for (const { what, isKilled, notes } of CASES) {
    test(`${what}: the lobby ends, no process remains, and the next find gets another lobby`, async () => {
      const game = await makeRoomGame(program, { max_players: 4 });
      const [one, other] = await enterTogether(program, game);
      const [{ id: server_id }] = await listServers(program, game);
      const processes = findProcessesOf(server_id);
      expect(processes).toHaveLength(2);

      for (const pid of processes.filter(isKilled)) process.kill(pid, 'SIGKILL');
      await Promise.all([one.closed, other.closed]);
      await waitFor(async () => (await listServers(program, game)).length === 0, 'the server to end');
      await waitFor(() => findProcessesOf(server_id).length === 0, 'its processes to end');
      const lobby = await waitFor(async () => {
        const answer = await program.api.post(`/matchmaker/lobbies/join`, game.public_token, {
          lobby_id: one.lobby_id,
        });
        return answer.status !== 200 && answer.body;
      }, 'the lobby to end');
      expect(lobby.code).toBe('MATCHMAKER_LOBBY_STOPPED');
      expect(await readNotes(program, game, server_id)).toEqual(notes);

      const third = await enterRoom(await findSeat(program, game));
      expect(third.lobby_id).not.toBe(one.lobby_id);
      await third.close();
    }, 300_000);
  }

  test('while the service is stopped: the next start notices, and the next find gets another lobby', async () => {
    const game = await makeRoomGame(program, { max_players: 4 });
    const [one, other] = await enterTogether(program, game);
    const [{ id: server_id }] = await listServers(program, game);
    await program.stop('SIGKILL');
    for (const pid of findProcessesOf(server_id)) process.kill(pid, 'SIGKILL');
    await Promise.all([one.closed, other.closed]);

    program = await home.start();
    await waitFor(async () => (await listServers(program, game)).length === 0, 'the server to end');
    expect(await readNotes(program, game, server_id)).toEqual([LOST]);
    const third = await enterRoom(await findSeat(program, game));
    expect(third.lobby_id).not.toBe(one.lobby_id);
    await third.close();
  }, 300_000);

  test('game servers: those of another Muster on the machine are not touched', async () => {
    const neighbor = await openHome(opened);
    const other_program = await neighbor.start();
    const game = await makeRoomGame(program, { max_players: 4 });
    const other_game = await makeRoomGame(other_program, { max_players: 4 });
    const players = await enterTogether(program, game);
    const neighbors = await enterTogether(other_program, other_game);

    await Promise.all(players.map((player) => player.close()));
    await waitFor(async () => (await listServers(program, game)).length === 0, 'the server to end');
    await program.stop('SIGINT');
    await seeEachOther(...neighbors);
    expect(await listServers(other_program, other_game)).toHaveLength(1);
  }, 300_000);
});

async function openHome(opened: AsyncDisposableStack): Promise<Home> {
  const { url } = opened.use(await openExternalDatabase());
  return opened.use(await makeHome({ MUSTER_DEMO: 'off', DATABASE_URL: url }));
}

/** Returns the lines that the service added to a server's standard error. */
async function readNotes({ api }: Program, game: TestGame, server_id: string): Promise<string[]> {
  const path = `/games/${game.game_id}/environments/${game.namespace_id}/servers/${server_id}/logs?stream=std_err`;
  const { lines } = await api.ok('GET', path, { token: game.cloud_token });
  return lines.map((line: string) => atob(line)).filter((line: string) => line.startsWith('[muster]'));
}
