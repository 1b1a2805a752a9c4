import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import type { Answer } from '../../support/api.ts';
import type { TestGame } from '../../support/game.ts';
import {
  connectGameServer,
  find,
  type GameServer,
  join,
  makeControlledGame,
  seatOf,
} from '../../support/game-server.ts';
import { type Inspector, openInspector } from '../../support/inspector.ts';
import { openTestService, type TestService } from '../../support/service.ts';
import { outcomeOf } from '../../support/suite.ts';
import { waitFor } from '../../support/wait.ts';

const GAMES = 3;
const PLAYERS = 8;
const VISITS = 10;
/** A seat whose request was cut is given back sooner. */
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
  machines = [first, opened.use(await openTestService({ MUSTER_DATACENTER: 'far' }, { beside: first }))];
  inspector = opened.use(openInspector(first));
}, 90_000);
afterAll(() => opened.disposeAsync(), 90_000);

const machine = (number: number) => machines[number % 2 === 0 ? 0 : 1];

/** Returns how many answers had each outcome. */
function countOutcomes(answers: Answer[]): Record<string, number> {
  return Object.fromEntries([...Map.groupBy(answers, outcomeOf)].map(([outcome, all]) => [outcome, all.length]));
}

const playerCounts = async ({ namespace_id }: TestGame) =>
  (await inspector.lobbiesOf(namespace_id)).map(({ player_count }) => player_count);

describe('two machines on one database', () => {
  test('create as many lobbies as a namespace may have, fill them, and refuse the rest', async () => {
    const game = await makeControlledGame(machines[0], {
      game_modes: { default: { max_players: 5 } },
      lobby_count_max: 3,
    });
    const answers = await Promise.all(Array.from({ length: 50 }, (_, number) => find(machine(number), game, HERE)));
    expect(countOutcomes(answers)).toEqual({ '200': 15, '400 MATCHMAKER_TOO_MANY_LOBBIES': 35 });
    expect(await playerCounts(game)).toEqual([5, 5, 5]);
    expect(await inspector.faults()).toEqual([]);
  });

  test('bring two players together in the only lobby of a namespace', async () => {
    for (let time = 0; time < 5; time += 1) {
      const game = await makeControlledGame(machines[0], { lobby_count_max: 1 });
      const seats = await Promise.all(machines.map((one) => seatOf(find(one, game, HERE))));
      expect(new Set(seats.map(({ lobby_id }) => lobby_id)).size).toBe(1);
      expect(await playerCounts(game)).toEqual([2]);
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
    expect(await playerCounts(game)).toEqual([12]);
  });

  test('lose no seat and give none twice while players come and go, and lobbies close, open and are removed', async () => {
    const game_modes = { default: { max_players: 3, max_players_direct: 5, idle_lobbies: { min: 0, max: 1 } } };
    const make = () => makeControlledGame(machines[0], { game_modes, lobby_count_max: 5 });
    const games = await Promise.all(Array.from({ length: GAMES }, make));
    const storms = games.map((game) => createStorm(game));
    const running = Promise.all(
      storms.flatMap(({ visit }) => Array.from({ length: PLAYERS }, (_, player) => repeat(VISITS, visit, player))),
    );
    let is_over = false;
    const watching = (async () => {
      while (!is_over) expect(await inspector.faults()).toEqual([]);
    })();
    await running.finally(() => {
      is_over = true;
    });
    await watching;
    for (const storm of storms) await storm.settle();
    expect([await inspector.faults(), await inspector.deadlocks()]).toEqual([[], 0]);
    expect([...new Set(storms.flatMap(({ unexpected }) => unexpected))]).toEqual([]);
  }, 90_000);
});

async function repeat(times: number, visit: (player: number, time: number) => Promise<void>, player: number) {
  for (let time = 0; time < times; time += 1) await visit(player, time);
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

function createStorm(game: TestGame) {
  const hosts = new Map<string, GameServer>();
  const unexpected: string[] = [];
  /** The lobbies of the seats that were answered, by player token. */
  const seats = new Map<string, string>();
  /** Requests that were cut. The answers of some, with their seats, may have been under way. */
  let cut = 0;

  async function note(what: string, asking: Promise<Answer>): Promise<Answer> {
    const answer = await asking;
    const outcome = outcomeOf(answer);
    if (!EXPECTED[what]?.test(outcome)) unexpected.push(`${what}: ${outcome}`);
    return answer;
  }

  async function getHost(lobby_id: string): Promise<GameServer | undefined> {
    const known = hosts.get(lobby_id);
    if (known) return known;
    // A lobby that was removed meanwhile has no server to call.
    if ((await inspector.stopReason(lobby_id)) !== undefined) return undefined;
    const host = await Promise.race([
      connectGameServer(machines[0], game, lobby_id),
      waitFor(() => inspector.stopReason(lobby_id), 'the lobby to stop').then(() => undefined),
    ]).catch(() => undefined);
    if (host) hosts.set(lobby_id, host);
    return host;
  }

  /** Finds or joins as one player, and mostly leaves; sometimes closes or removes the lobby, or cuts the request. */
  async function visit(player: number, time: number): Promise<void> {
    const mood = (player * 7 + time * 3) % 10;
    const asked = machine(player + time);
    if (mood === 0) {
      const going = new AbortController();
      const gone = find(asked, game, HERE, going.signal).catch(() => undefined);
      await asked.api.ok('GET', '/health/live');
      going.abort();
      const answer = await gone;
      if (!answer) cut += 1;
      if (answer?.status === 200) seats.set(answer.body.player.token, answer.body.lobby.lobby_id);
      return;
    }
    const [known] = [...seats.values()].slice(-1);
    const is_joining = mood % 3 === 0 && known !== undefined;
    const asking = is_joining ? note('join', join(asked, game, known)) : note('find', find(asked, game, HERE));
    const { status, body } = await asking;
    if (status !== 200) return;
    const { lobby_id } = body.lobby;
    const { token } = body.player;
    seats.set(token, lobby_id);
    const host = await getHost(lobby_id);
    if (!host) return;
    const { connected, disconnected, setClosed } = host;
    if (mood > 3) await note('connected', connected(token));
    if (mood === 5) await note('closed', setClosed(true));
    if (mood === 6)
      await Promise.all([note('disconnected', disconnected(token)), note('disconnected', disconnected(token))]);
    if (mood >= 7) await note('disconnected', disconnected(token));
    if (mood >= 6) seats.delete(token);
    if (mood === 5) await note('closed', setClosed(false));
    if (mood === 8 && time % 4 === 0) {
      const path = `/cloud/games/${game.game_id}/matchmaker/lobbies/${lobby_id}`;
      await note('remove', asked.api.call('DELETE', path, { token: game.cloud_token }));
    }
  }

  const countPlayers = async () => (await playerCounts(game)).reduce((sum, count) => sum + count, 0);

  /** Checks that exactly the answered seats are taken, and that both machines find each free seat. */
  async function settle(): Promise<void> {
    const stopped = await Promise.all(
      [...new Set(seats.values())].map(async (lobby_id) => [lobby_id, await inspector.stopReason(lobby_id)] as const),
    );
    const ended = new Set(stopped.filter(([, reason]) => reason !== undefined).map(([lobby_id]) => lobby_id));
    const sitting = [...seats].filter(([, lobby_id]) => !ended.has(lobby_id));
    await waitFor(
      async () => {
        const before = await countPlayers();
        // The seats of cut requests may be given back meanwhile.
        await Bun.sleep(SETTLED_AFTER_MS);
        return before === (await countPlayers()) && before >= sitting.length && before <= sitting.length + cut;
      },
      `${sitting.length} to ${sitting.length + cut} players to have seats`,
    );
    for (const [token, lobby_id] of sitting) {
      const host = await getHost(lobby_id);
      expect(host && outcomeOf(await host.connected(token))).toMatch(/^200$|MATCHMAKER_PLAYER_ALREADY_CONNECTED$/);
    }
    const free = (await playerCounts(game)).reduce((sum, count) => sum + Math.max(0, 3 - count), 0);
    for (let place = 0; place < free; place += 1) await seatOf(find(machine(place), game, PREVENT));
    for (const one of machines) {
      expect(outcomeOf(await find(one, game, PREVENT))).toBe('400 MATCHMAKER_NO_AVAILABLE_LOBBIES');
    }
  }

  return { visit, settle, unexpected };
}
