import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { writeFile } from 'node:fs/promises';
import { join as joinPath } from 'node:path';
import { playersMaxOf } from '../../../src/features/lobbies/matchmaking/client-limits.ts';
import type { TestGame } from '../../support/game.ts';
import { setLimits } from '../../support/game.ts';
import { connectGameServer, find, join, makeControlledGame, seatOf } from '../../support/game-server.ts';
import { type Inspector, openInspector } from '../../support/inspector.ts';
import { makeDataDirectory, openTestService, type TestService } from '../../support/service.ts';
import { countOutcomes, outcomeOf } from '../../support/suite.ts';
import { waitFor } from '../../support/wait.ts';

const TOO_MANY = '400 MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE';
const HERE = { regions: ['local'] };

let opened: AsyncDisposableStack;
let near: TestService;
let far: TestService;
let inspector: Inspector;
beforeAll(async () => {
  opened = new AsyncDisposableStack();
  const address_classes = joinPath(await makeDataDirectory(), 'classes');
  await writeFile(address_classes, '127.0.0.0/8 tor\n');
  near = opened.use(await openTestService());
  const settings = { MUSTER_DATACENTER: 'far', MUSTER_ADDRESS_CLASSES: address_classes };
  far = opened.use(await openTestService(settings, { database_of: near }));
  inspector = opened.use(openInspector(near));
}, 300_000);
afterAll(() => opened.disposeAsync(), 300_000);

const create = ({ api }: TestService, { public_token }: TestGame, body: object = {}) =>
  api.post('/matchmaker/lobbies/create', public_token, { game_mode: 'default', region: 'local', ...body });
const CUSTOM = { taggable: true, actions: { create: { enabled: true, enable_public: true } } };
const make = (max_players: number, mode: object = CUSTOM) =>
  makeControlledGame(near, { max_players, game_modes: { default: mode } });
const countPlayers = async ({ namespace_id }: TestGame) =>
  (await inspector.playerCounts(namespace_id)).reduce((sum, count) => sum + count, 0);

describe('a client at its limit of players', () => {
  test('is refused by find, join and create, with its limit in the error', async () => {
    const game = await make(2);
    const { lobby_id } = await seatOf(find(near, game));
    await seatOf(join(near, game, lobby_id));
    const refused = await find(near, game);
    expect(outcomeOf(refused)).toBe(TOO_MANY);
    expect(refused.body.message).toContain('limit of 2 players');
    expect(outcomeOf(await join(near, game, lobby_id))).toBe(TOO_MANY);
    expect(outcomeOf(await create(near, game))).toBe(TOO_MANY);
    // No lobby is created for a refused client.
    expect(outcomeOf(await find(near, game, { tags: { color: 'red' } }))).toBe(TOO_MANY);
    expect(await inspector.lobbiesOf(game.namespace_id)).toHaveLength(1);
  });

  test('wakes no watcher by its refusals', async () => {
    const game = await make(1);
    const { lobby_id } = await seatOf(find(near, game));
    const indexOf = async () =>
      (await near.api.ok('GET', '/matchmaker/lobbies/list', { token: game.public_token })).watch.index;
    const before = await indexOf();
    for (const _time of [1, 2]) {
      expect(outcomeOf(await find(near, game))).toBe(TOO_MANY);
      expect(outcomeOf(await find(near, game, { tags: { color: 'red' } }))).toBe(TOO_MANY);
      expect(outcomeOf(await join(near, game, lobby_id))).toBe(TOO_MANY);
      expect(outcomeOf(await create(near, game))).toBe(TOO_MANY);
    }
    expect(await indexOf()).toBe(before);
  });

  test('is refused before a lobby is created for it', async () => {
    const game = await make(1, { max_players: 1 });
    await seatOf(find(near, game));
    expect(outcomeOf(await find(near, game))).toBe(TOO_MANY);
    expect(await inspector.lobbiesOf(game.namespace_id)).toHaveLength(1);
  });

  test('is refused with all players of a party, or gets seats for all', async () => {
    const game = await make(4);
    expect(outcomeOf(await find(near, game, { players: 5 }))).toBe(TOO_MANY);
    const { lobby_id } = await seatOf(find(near, game, { players: 3 }));
    expect(outcomeOf(await find(near, game, { players: 2 }))).toBe(TOO_MANY);
    expect(await countPlayers(game)).toBe(3);
    expect((await seatOf(find(near, game))).lobby_id).toBe(lobby_id);
  });

  test('has the lowest limit of the classes that the operator gave its address', async () => {
    const game = await make(8);
    const path = `/cloud/games/${game.game_id}/namespaces`;
    const body = { display_name: 'Fresh', name_id: 'fresh', version_id: game.version_id };
    const { namespace_id } = await near.api.ok('POST', path, { token: game.cloud_token, body });
    const token = await near.api.ok('POST', `${path}/${namespace_id}/tokens/public`, { token: game.cloud_token });
    const fresh = { ...game, namespace_id, public_token: token.token };
    // The defaults of a namespace: 8 for an address of one household, 2 for one of Tor.
    expect([await find(far, fresh, HERE), await find(far, fresh, HERE)].map(outcomeOf)).toEqual(['200', '200']);
    expect(outcomeOf(await find(far, fresh, HERE))).toBe(TOO_MANY);
    expect(outcomeOf(await find(near, fresh))).toBe('200');
  });
});

test('playersMaxOf: a client has the lowest of the limits that apply to its classes', () => {
  const limits = {
    max_players_per_client: 8,
    max_players_per_client_vpn: 4,
    max_players_per_client_proxy: 3,
    max_players_per_client_tor: 9,
    max_players_per_client_hosting: 2,
  };
  expect(playersMaxOf(limits, [])).toBe(8);
  expect(playersMaxOf(limits, ['vpn'])).toBe(4);
  expect(playersMaxOf(limits, ['vpn', 'hosting', 'proxy'])).toBe(2);
  expect(playersMaxOf(limits, ['tor'])).toBe(8);
});

describe('a client may have another player', () => {
  test('once one has left, a seat has expired, or a lobby has ended', async () => {
    const game = await make(1);
    const first = await seatOf(find(near, game));
    const game_server = await connectGameServer(near, game, first.lobby_id);
    expect(outcomeOf(await find(near, game))).toBe(TOO_MANY);
    await Promise.all([game_server.disconnected(first.player_token), game_server.disconnected(first.player_token)]);
    await seatOf(find(near, game));
    expect(outcomeOf(await find(near, game))).toBe(TOO_MANY);
    near.clock.advance(121_000);
    await waitFor(async () => (await countPlayers(game)) === 0, 'the seat to expire');
    const third = await seatOf(find(near, game));
    const path = `/cloud/games/${game.game_id}/matchmaker/lobbies/${third.lobby_id}`;
    await near.api.ok('DELETE', path, { token: game.cloud_token });
    await seatOf(find(near, game));
    expect(await inspector.faults(game.namespace_id)).toEqual([]);
  });

  test('once the namespace allows more', async () => {
    const game = await make(1);
    await seatOf(find(near, game));
    expect(outcomeOf(await find(near, game))).toBe(TOO_MANY);
    await setLimits(near.api, { ...game, token: game.cloud_token }, { max_players: 2 });
    await seatOf(find(near, game));
    // Below the current number, every player stays and no other comes.
    await setLimits(near.api, { ...game, token: game.cloud_token }, { max_players: 1 });
    expect(outcomeOf(await find(near, game))).toBe(TOO_MANY);
    expect(await countPlayers(game)).toBe(2);
  });

  test('in another namespace', async () => {
    const [one, other] = await Promise.all([make(1), make(1)]);
    expect([await find(near, one), await find(near, other)].map(outcomeOf)).toEqual(['200', '200']);
  });
});

describe('64 concurrent requests of one client to two machines', () => {
  test('requests for an existing lobby get exactly the allowed seats', async () => {
    for (const max of [1, 7, 20]) {
      const game = await make(max, { max_players: 64 });
      const first = await seatOf(find(near, game));
      const ask = (number: number) => {
        const machine = number % 2 ? near : { ...near, api: far.api };
        return number % 3 ? find(machine, game, HERE) : join(machine, game, first.lobby_id);
      };
      const answers = await Promise.all(Array.from({ length: 64 }, (_, number) => ask(number)));
      expect(Object.keys(countOutcomes(answers)).toSorted()).toEqual(max === 1 ? [TOO_MANY] : ['200', TOO_MANY]);
      expect(await countPlayers(game)).toBe(max);
      expect(await inspector.faults(game.namespace_id)).toEqual([]);
    }
  }, 300_000);

  test('creates of a new client get exactly the allowed seats', async () => {
    const game = await make(11, { max_players: 2 });
    const machines = [near, far];
    const ask = (number: number) => find(machines[number % 2] ?? near, game, { ...HERE, players: 1 + (number % 2) });
    const answers = await Promise.all(Array.from({ length: 64 }, (_, number) => ask(number)));
    expect(Object.keys(countOutcomes(answers)).toSorted()).toEqual(['200', TOO_MANY]);
    expect(await countPlayers(game)).toBe(11);
    expect([await inspector.faults(game.namespace_id), await inspector.deadlocks()]).toEqual([[], 0]);
  }, 300_000);
});
