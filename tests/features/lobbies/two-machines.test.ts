import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import type { Answer } from '../../support/api.ts';
import type { TestGame } from '../../support/game.ts';
import { find, findGameServer, type GameServer, join, makeControlledGame, seatOf } from '../../support/game-server.ts';
import { type Inspector, openInspector } from '../../support/inspector.ts';
import { openTestService, type TestService } from '../../support/service.ts';
import { countOutcomes, outcomeOf } from '../../support/suite.ts';
import { waitFor } from '../../support/wait.ts';

const GAMES = 3;
const PLAYERS = 8;
const VISITS = 10;
/** Longer than it takes until the seat of an aborted request is given back. */
const SETTLED_AFTER_MS = 500;

/** Servers run on the first machine only; requests go to both. */
const HERE = { regions: ['local'] };
const PREVENT = { ...HERE, prevent_auto_create_lobby: true };

let opened: AsyncDisposableStack;
let machines: [TestService, TestService];
let inspector: Inspector;
beforeAll(async () => {
  opened = new AsyncDisposableStack();
  const first = opened.use(await openTestService());
  machines = [first, opened.use(await openTestService({ MUSTER_DATACENTER: 'far' }, { database_of: first }))];
  inspector = opened.use(openInspector(first));
}, 300_000);
afterAll(() => opened.disposeAsync(), 300_000);

const machine = (number: number) => machines[number % 2 === 0 ? 0 : 1];

describe('two machines on one database', () => {
  test('create as many lobbies as a namespace may have, fill them, and refuse the rest', async () => {
    const game = await makeControlledGame(machines[0], {
      game_modes: { default: { max_players: 5 } },
      lobby_count_max: 3,
    });
    const answers = await Promise.all(Array.from({ length: 50 }, (_, number) => find(machine(number), game, HERE)));
    expect(countOutcomes(answers)).toEqual({ '200': 15, '400 MATCHMAKER_TOO_MANY_LOBBIES': 35 });
    expect(await inspector.playerCounts(game.namespace_id)).toEqual([5, 5, 5]);
    expect(await inspector.faults()).toEqual([]);
  });

  test('bring two players together in the only lobby of a namespace', async () => {
    for (let time = 0; time < 5; time += 1) {
      const game = await makeControlledGame(machines[0], { lobby_count_max: 1 });
      const seats = await Promise.all(machines.map((one) => seatOf(find(one, game, HERE))));
      expect(new Set(seats.map(({ lobby_id }) => lobby_id)).size).toBe(1);
      expect(await inspector.playerCounts(game.namespace_id)).toEqual([2]);
    }
  });

  test('give each of the last seats of a lobby once', async () => {
    const game_modes = { default: { max_players: 10, max_players_direct: 12 } };
    const game = await makeControlledGame(machines[0], { game_modes });
    const { lobby_id } = await seatOf(find(machines[0], game));
    const finds = Array.from({ length: 20 }, (_, number) => find(machine(number), game, PREVENT));
    const joins = Array.from({ length: 20 }, (_, number) => join(machine(number), game, lobby_id));
    const found = countOutcomes(await Promise.all(finds));
    const joined = countOutcomes(await Promise.all(joins));
    expect((found['200'] ?? 0) + (joined['200'] ?? 0)).toBe(11);
    // On a busy machine the joins may take all seats.
    expect(found['400 MATCHMAKER_NO_AVAILABLE_LOBBIES']).toBe(20 - (found['200'] ?? 0));
    expect(joined['400 MATCHMAKER_LOBBY_FULL']).toBe(20 - (joined['200'] ?? 0));
    expect(await inspector.playerCounts(game.namespace_id)).toEqual([12]);
  });

  test('lose no seat and give none twice while players come and go, and lobbies close, open and are removed', async () => {
    const game_modes = { default: { max_players: 3, max_players_direct: 5, idle_lobbies: { min: 0, max: 1 } } };
    const make = () => makeControlledGame(machines[0], { game_modes, lobby_count_max: 5 });
    const games = await Promise.all(Array.from({ length: GAMES }, make));
    const groups = games.map((game) => createPlayers(game));
    const running = Promise.all(
      groups.flatMap(({ playOnce }) =>
        Array.from({ length: PLAYERS }, (_, player) => repeat(VISITS, playOnce, player)),
      ),
    );
    let is_over = false;
    const watching = (async () => {
      while (!is_over) expect(await inspector.faults()).toEqual([]);
    })();
    await running.finally(() => {
      is_over = true;
    });
    await watching;
    for (const players of groups) await players.checkSeats();
    expect([await inspector.faults(), await inspector.deadlocks()]).toEqual([[], 0]);
    expect([...new Set(groups.flatMap(({ unexpected }) => unexpected))]).toEqual([]);
  }, 300_000);
});

async function repeat(times: number, playOnce: (player: number, time: number) => Promise<void>, player: number) {
  for (let time = 0; time < times; time += 1) await playOnce(player, time);
}

/** Outcomes that may occur while lobbies change. */
const EXPECTED: Record<string, RegExp> = {
  find: /^200$|MATCHMAKER_(TOO_MANY_LOBBIES|LOBBY_STOPPED)$/,
  join: /^200$|MATCHMAKER_(LOBBY_FULL|LOBBY_STOPPED)$/,
  connected: /^200$|MATCHMAKER_PLAYER_REMOVED$/,
  disconnected: /^200$/,
  closed: /^200$|MATCHMAKER_LOBBY_STOPPED$/,
  remove: /^200$/,
};

function createPlayers(game: TestGame) {
  const game_servers = new Map<string, GameServer>();
  const unexpected: string[] = [];
  /** The lobbies of the seats that were answered, by player token. */
  const seats = new Map<string, string>();
  /** The number of aborted requests. Some of them may have been answered with seats. */
  let aborted = 0;

  async function check(what: string, request: Promise<Answer>): Promise<Answer> {
    const answer = await request;
    const outcome = outcomeOf(answer);
    if (!EXPECTED[what]?.test(outcome)) unexpected.push(`${what}: ${outcome}`);
    return answer;
  }

  async function getGameServer(lobby_id: string): Promise<GameServer | undefined> {
    const known = game_servers.get(lobby_id);
    if (known) return known;
    // A lobby that was removed meanwhile has no server to call.
    const game_server = await waitFor(async () => {
      if ((await inspector.stopReason(lobby_id)) !== undefined) return 'stopped';
      return await findGameServer(machines[0], game, lobby_id);
    }, `the server of lobby ${lobby_id}, or the lobby to stop`);
    if (game_server === 'stopped') return undefined;
    game_servers.set(lobby_id, game_server);
    return game_server;
  }

  /** Finds or joins as one player, and mostly leaves; sometimes closes or removes the lobby, or aborts the request. */
  async function playOnce(player: number, time: number): Promise<void> {
    const choice = (player * 7 + time * 3) % 10;
    const service = machine(player + time);
    if (choice === 0) {
      const aborting = new AbortController();
      const finding = find(service, game, HERE, aborting.signal).catch(() => undefined);
      await service.api.ok('GET', '/health/live');
      aborting.abort();
      const answer = await finding;
      if (!answer) aborted += 1;
      if (answer?.status === 200) seats.set(answer.body.player.token, answer.body.lobby.lobby_id);
      return;
    }
    const [known] = [...seats.values()].slice(-1);
    const is_joining = choice % 3 === 0 && known !== undefined;
    const request = is_joining ? check('join', join(service, game, known)) : check('find', find(service, game, HERE));
    const { status, body } = await request;
    if (status !== 200) return;
    const { lobby_id } = body.lobby;
    const { token } = body.player;
    seats.set(token, lobby_id);
    const game_server = await getGameServer(lobby_id);
    if (!game_server) return;
    const { connected, disconnected, setClosed } = game_server;
    if (choice > 3) await check('connected', connected(token));
    if (choice === 5) await check('closed', setClosed(true));
    if (choice === 6)
      await Promise.all([check('disconnected', disconnected(token)), check('disconnected', disconnected(token))]);
    if (choice >= 7) await check('disconnected', disconnected(token));
    if (choice >= 6) seats.delete(token);
    if (choice === 5) await check('closed', setClosed(false));
    if (choice === 8 && time % 4 === 0) {
      const path = `/cloud/games/${game.game_id}/matchmaker/lobbies/${lobby_id}`;
      await check('remove', service.api.call('DELETE', path, { token: game.cloud_token }));
    }
  }

  const countPlayers = async () =>
    (await inspector.playerCounts(game.namespace_id)).reduce((sum, count) => sum + count, 0);

  /** Checks that exactly the answered seats are taken, and that both machines find each free seat. */
  async function checkSeats(): Promise<void> {
    const stopped = await Promise.all(
      [...new Set(seats.values())].map(async (lobby_id) => [lobby_id, await inspector.stopReason(lobby_id)] as const),
    );
    const ended = new Set(stopped.filter(([, reason]) => reason !== undefined).map(([lobby_id]) => lobby_id));
    const seated = [...seats].filter(([, lobby_id]) => !ended.has(lobby_id));
    await waitFor(
      async () => {
        const before = await countPlayers();
        // The seats of aborted requests may be given back meanwhile.
        await Bun.sleep(SETTLED_AFTER_MS);
        return before === (await countPlayers()) && before >= seated.length && before <= seated.length + aborted;
      },
      `${seated.length} to ${seated.length + aborted} players to have seats`,
    );
    for (const [token, lobby_id] of seated) {
      const game_server = await getGameServer(lobby_id);
      expect(game_server && outcomeOf(await game_server.connected(token))).toMatch(
        /^200$|MATCHMAKER_PLAYER_ALREADY_CONNECTED$/,
      );
    }
    const free = (await inspector.playerCounts(game.namespace_id)).reduce(
      (sum, count) => sum + Math.max(0, 3 - count),
      0,
    );
    for (let index = 0; index < free; index += 1) await seatOf(find(machine(index), game, PREVENT));
    for (const one of machines) {
      expect(outcomeOf(await find(one, game, PREVENT))).toBe('400 MATCHMAKER_NO_AVAILABLE_LOBBIES');
    }
  }

  return { playOnce, checkSeats, unexpected };
}
