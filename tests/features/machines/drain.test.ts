import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { mkdir, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { listServers, makeGame } from '../../support/game.ts';
import { connectGameServer, find, makeControlledGame, seatOf } from '../../support/game-server.ts';
import { machineIdOf, machinesOf } from '../../support/machines/machines.ts';
import { makeGuest } from '../../support/people.ts';
import { serversOf, startedBy } from '../../support/servers.ts';
import { makeDataDirectory, openTestService, type TestService } from '../../support/service.ts';
import { outcomeOf } from '../../support/suite.ts';
import { waitFor } from '../../support/wait.ts';

const HOUR_MS = 3_600_000;

let one: TestService;
let other: TestService;
let one_id: string;
let other_id: string;
let machines: ReturnType<typeof machinesOf>;
beforeAll(async () => {
  one = await openTestService();
  const data_directory = await makeDataDirectory();
  // Both machines read the same uploads.
  const objects = join(one.config.data_directory, 'objects');
  await mkdir(objects, { recursive: true });
  await symlink(objects, join(data_directory, 'objects'));
  const settings = { MUSTER_DATA: data_directory };
  other = await openTestService(settings, { database_of: one });
  one_id = await machineIdOf(one.config.data_directory);
  other_id = await machineIdOf(data_directory);
  machines = machinesOf(one);
}, 300_000);
afterAll(async () => {
  await other[Symbol.asyncDispose]();
  await one[Symbol.asyncDispose]();
}, 300_000);

type Game = Awaited<ReturnType<typeof makeControlledGame>>;

/** The servers of a game that run, and the machine of each. */
async function listRunningServers(game: Game): Promise<{ id: string; lobby_id: string; machine_id: string }[]> {
  const servers: { id: string; tags: { lobby_id: string } }[] = await listServers(one, game);
  return servers.map(({ id, tags }) => ({
    id,
    lobby_id: tags.lobby_id,
    machine_id: startedBy(one).includes(id) ? one_id : startedBy(other).includes(id) ? other_id : 'none',
  }));
}

/** Makes a game with a player in a lobby on the machine. Ends and repeats lobbies that start on the other one. */
async function makeGameOn(machine_id: string): Promise<{ game: Game; lobby_id: string; player_token: string }> {
  const elsewhere = machine_id === one_id ? other_id : one_id;
  await machines.drain(elsewhere);
  const game = await makeControlledGame(one, { game_modes: { default: {} } });
  const seat = await seatOf(find(one, game));
  await machines.endDrain(elsewhere);
  expect(await listRunningServers(game)).toMatchObject([{ lobby_id: seat.lobby_id, machine_id }]);
  return { game, ...seat };
}

describe('draining a machine', () => {
  test('is refused to all but administrators, and for a machine that does not exist', async () => {
    const game = await makeGame(one.api, one.administrator_token);
    const { token: guest_token } = await makeGuest(one.api, game);
    const outcomesOf = async (machine_id: string, token: string | undefined) => {
      const path = `/cloud/machines/${machine_id}`;
      const answers = [
        await one.api.get(path, token),
        await one.api.put(`${path}/drain`, token, {}),
        await one.api.call('DELETE', `${path}/drain`, { token }),
      ];
      return [...new Set(answers.map(outcomeOf))];
    };
    expect(await outcomesOf(one_id, undefined)).toEqual(['401 API_UNAUTHORIZED']);
    expect(await outcomesOf(one_id, game.cloud_token)).toEqual(['401 CLAIMS_MISSING_ENTITLEMENT']);
    expect(await outcomesOf(one_id, guest_token)).toEqual(['403 IDENTITY_NOT_ADMIN']);
    expect(outcomeOf(await one.api.get('/cloud/machines', guest_token))).toBe('403 IDENTITY_NOT_ADMIN');
    const unknown = crypto.randomUUID();
    expect(await outcomesOf(unknown, one.administrator_token)).toEqual(['404 MACHINE_NOT_FOUND']);
    for (const deadline_ms of [-1, 1.5, 8 * 24 * HOUR_MS, 'soon']) {
      const answer = await one.api.put(`/cloud/machines/${one_id}/drain`, one.administrator_token, { deadline_ms });
      expect(outcomeOf(answer)).toBe('400 API_BAD_BODY');
    }
    for (const machine of await machines.list()) expect(machine).not.toHaveProperty('drain');
  });

  test('lists both machines, with what runs on them', async () => {
    const { lobby_id, game } = await makeGameOn(one_id);
    const listed = await machines.list();
    expect(listed.map(({ machine_id }: { machine_id: string }) => machine_id).sort()).toEqual(
      [one_id, other_id].sort(),
    );
    expect(await machines.get(one_id)).toMatchObject({ state: 'up', servers: 1, lobbies: 1, players: 1 });
    expect(await machines.get(other_id)).toMatchObject({ state: 'up', servers: 0, lobbies: 0, players: 0 });
    const { administrator_token: token } = one;
    await one.api.ok('DELETE', `/cloud/games/${game.game_id}/matchmaker/lobbies/${lobby_id}`, { token });
    await waitFor(async () => (await machines.get(one_id)).servers === 0, 'the lobby to end');
  });

  test('gives its players time, and seats of its lobbies to no one else', async () => {
    const { game, lobby_id, player_token } = await makeGameOn(one_id);
    const drained = await machines.drain(one_id, { deadline_ms: HOUR_MS });
    expect(drained.drain).toMatchObject({ is_complete: false });
    expect(Date.parse(drained.drain.deadline_ts) - Date.parse(drained.drain.since_ts)).toBeGreaterThan(
      HOUR_MS - 60_000,
    );
    const player_tokens = [player_token];
    const next = await waitFor(async () => {
      const seat = await seatOf(find(one, game));
      if (seat.lobby_id !== lobby_id) return seat;
      // Until the process knows of the drain.
      player_tokens.push(seat.player_token);
      return undefined;
    }, 'a find to get a seat elsewhere');
    const running = await listRunningServers(game);
    expect(running.find((server) => server.lobby_id === next.lobby_id)?.machine_id).toBe(other_id);
    expect(running.find((server) => server.lobby_id === lobby_id)?.machine_id).toBe(one_id);

    // The lobby ends with its last player.
    const server = await connectGameServer(one, game, lobby_id);
    for (const token of player_tokens) expect(outcomeOf(await server.connected(token))).toBe('200');
    expect((await machines.get(one_id)).drain.is_complete).toBe(false);
    for (const token of player_tokens) expect(outcomeOf(await server.disconnected(token))).toBe('200');
    await waitFor(async () => (await machines.get(one_id)).drain.is_complete, 'the machine to be empty');
    expect(await machines.get(one_id)).toMatchObject({ state: 'up', servers: 0, lobbies: 0, players: 0 });

    expect(await machines.endDrain(one_id)).not.toHaveProperty('drain');
  }, 300_000);

  test('ends lobbies with players, and other servers, at the deadline', async () => {
    const { game, lobby_id } = await makeGameOn(one_id);
    await machines.drain(other_id);
    const servers = serversOf(one, game);
    const server_id = await servers.run(`trap 'exit 0' TERM; while :; do sleep 0.02; done`);
    await servers.waitForStart(server_id);
    await machines.endDrain(other_id);
    await machines.drain(one_id, { deadline_ms: 0 });
    await waitFor(async () => (await machines.get(one_id)).drain.is_complete, 'the machine to be empty');
    const { administrator_token: token } = one;
    const history = `/cloud/games/${game.game_id}/namespaces/${game.namespace_id}/logs/lobbies/${lobby_id}`;
    const { lobby } = await one.api.ok('GET', history, { token });
    expect(lobby.status).toMatchObject({ stopped: { failed: false } });
    const { end } = await one.api.ok('GET', `${servers.path}/${server_id}/end`, { token: game.cloud_token });
    expect(end).toMatchObject({ has_crashed: false });
    await machines.endDrain(one_id);
  }, 300_000);

  test('of all machines: a find says why it waits, and is seated once a drain ends', async () => {
    await machines.drain(one_id);
    await machines.drain(other_id);
    const game = await makeControlledGame(one);
    const finding = find(one, game);
    const reported = await waitFor(
      () => [...one.events, ...other.events].find((event) => event.event === 'server_waits'),
      'the wait to be reported',
    );
    expect(reported).toMatchObject({ reason: 'machines_draining' });
    await machines.endDrain(other_id);
    const { lobby_id } = await seatOf(finding);
    expect(await listRunningServers(game)).toMatchObject([{ lobby_id, machine_id: other_id }]);
    await machines.endDrain(one_id);
  }, 300_000);

  test('makes warm lobbies elsewhere', async () => {
    await machines.drain(other_id);
    const game = await makeControlledGame(one, {
      game_modes: { default: { idle_lobbies: { min: 1, max: 1 } } },
    });
    await waitFor(async () => (await listRunningServers(game))[0]?.machine_id === one_id, 'a warm lobby');
    await machines.endDrain(other_id);
    await machines.drain(one_id);
    await waitFor(async () => {
      const running = await listRunningServers(game);
      return running.length === 1 && running[0]?.machine_id === other_id;
    }, 'a warm lobby on the other machine');
    await machines.endDrain(one_id);
  }, 300_000);
});
