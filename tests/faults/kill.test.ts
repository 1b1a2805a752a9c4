import { describe, expect, test } from 'bun:test';
import { commandOf, EXECUTABLE, makeHome, type Program } from '../support/program.ts';
import { enterRoom, makeRoomGame, type RoomPlayer } from '../support/room.ts';
import { waitFor } from '../support/wait.ts';

const KINDS = EXECUTABLE === undefined ? (['source'] as const) : (['source', 'executable'] as const);

async function openRoom(program: Program) {
  const game = await makeRoomGame(program, { max_players: 4 });
  const find = (api = program.api) =>
    api.ok('POST', '/matchmaker/lobbies/find', { token: game.public_token, body: { game_modes: ['default'] } });
  const first = await enterRoom(await find());
  const second = await enterRoom(await find());
  return { game, find, first, second };
}

async function seeEachOther(first: RoomPlayer, second: RoomPlayer, x: number): Promise<void> {
  first.socket.send(JSON.stringify({ x, y: 0 }));
  second.socket.send(JSON.stringify({ x, y: 1 }));
  const sees = ({ positions }: RoomPlayer) =>
    [0, 1].every((y) => Object.values(positions).some((position) => position.x === x && position.y === y));
  await waitFor(() => sees(first) && sees(second), 'both players to see both');
}

describe('the service is killed', () => {
  for (const kind of KINDS) {
    test(`${kind}: players stay, the next start adopts their server, the next find joins them`, async () => {
      await using home = await makeHome();
      const options = { command: commandOf(kind) };
      const killed = await home.start(options);
      const { game, find, first, second } = await openRoom(killed);
      expect(second.lobby_id).toBe(first.lobby_id);
      const servers = `/games/${game.game_id}/environments/${game.namespace_id}/servers`;
      const listServers = (program: Program) =>
        program.api.ok('GET', `${servers}?include_destroyed=true`, { token: game.cloud_token });
      const before = await listServers(killed);

      await killed.stop('SIGKILL');
      await seeEachOther(first, second, 0.3);

      const next = await home.start(options);
      expect(next.pid).not.toBe(killed.pid);
      await seeEachOther(first, second, 0.6);
      expect(await listServers(next)).toEqual(before);

      const third = await enterRoom(await find(next.api));
      expect(third.lobby_id).toBe(first.lobby_id);
      await seeEachOther(first, third, 0.9);

      // The server that was adopted still tells of its players: seats that were taken before are free again.
      await Promise.all([first.close(), second.close(), third.close()]);
      await waitFor(async () => {
        const { servers: running } = await next.api.ok('GET', servers, { token: game.cloud_token });
        return running.length === 0;
      }, 'the room to end after the last has left');
    }, 30_000);
  }

  test('SIGTERM leaves game servers and players where they are; ctrl-C ends them', async () => {
    await using home = await makeHome();
    const stopped = await home.start();
    const { find, first, second } = await openRoom(stopped);
    expect(await stopped.stop('SIGTERM')).toBe(0);
    await seeEachOther(first, second, 0.4);

    const next = await home.start();
    const third = await enterRoom(await find(next.api));
    expect(third.lobby_id).toBe(first.lobby_id);
    expect(await next.stop('SIGINT')).toBe(0);
    await Promise.all([first.closed, second.closed, third.closed]);
  }, 30_000);
});
