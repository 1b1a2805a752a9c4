import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import type { TestGame } from '../../support/game.ts';
import { type Ledger, openLedger } from '../../support/ledger.ts';
import { find, makePuppetGame, onlyLobby, seatOf } from '../../support/puppet.ts';
import { openTestService, type TestService } from '../../support/service.ts';

let muster: TestService;
let ledger: Ledger;
beforeAll(async () => {
  muster = await openTestService({ MUSTER_SERVER_HOST: 'play.example.com' });
  ledger = openLedger(muster);
});
afterAll(async () => {
  await ledger[Symbol.asyncDispose]();
  await muster[Symbol.asyncDispose]();
});

const GAME_MODES = {
  default: {},
  small: { max_players: 1 },
  tagged: { taggable: true },
  dynamic: { allow_dynamic_max_players: true, max_players: 4, max_players_direct: 6 },
  not_found: { actions: { find: { enabled: false } } },
  with_identity: { actions: { find: { enabled: true, identity_requirement: 'registered' } } },
  nowhere: { regions: {} },
};

interface Refusal {
  promise: string;
  body: object;
  status: number;
  code: string;
  message: string;
}

const eight_tags = Object.fromEntries(Array.from({ length: 8 }, (_, index) => [`tag ${index}`, '']));

const REFUSALS: Refusal[] = [
  {
    promise: 'without game_modes',
    body: { game_modes: undefined },
    status: 400,
    code: 'API_BAD_BODY',
    message: '"game_modes"',
  },
  {
    promise: 'no game mode',
    body: { game_modes: [] },
    status: 400,
    code: 'MATCHMAKER_NO_GAME_MODE_PROVIDED',
    message: 'Name at least one game mode in game_modes.',
  },
  {
    promise: 'a game mode that there is not',
    body: { game_modes: ['default', 'chess'] },
    status: 404,
    code: 'MATCHMAKER_GAME_MODE_NOT_FOUND',
    message: '"chess"',
  },
  {
    promise: 'a ninth tag',
    body: { game_modes: ['tagged'], tags: { ...eight_tags, ninth: '' } },
    status: 400,
    code: 'MATCHMAKER_TOO_MANY_TAGS',
    message: 'At most 8 tags may be given.',
  },
  {
    promise: 'a tag whose name has more than 128 bytes',
    body: { game_modes: ['tagged'], tags: { [`${'é'.repeat(64)}a`]: '' } },
    status: 400,
    code: 'MATCHMAKER_TAG_NAME_TOO_LONG',
    message: 'at most 128 bytes',
  },
  {
    promise: 'a tag of more than 512 bytes',
    body: { game_modes: ['tagged'], tags: { map: `${'é'.repeat(256)}a` } },
    status: 400,
    code: 'MATCHMAKER_TAG_TOO_LONG',
    message: 'at most 512 bytes',
  },
  {
    promise: 'tags that are not texts',
    body: { game_modes: ['tagged'], tags: { map: 1 } },
    status: 400,
    code: 'API_BAD_BODY',
    message: '"tags.map"',
  },
  ...['\0', '\ud800'].flatMap((text) => [
    {
      promise: `a tag whose name holds ${JSON.stringify(text)}, which the database cannot keep`,
      body: { game_modes: ['tagged'], tags: { [`map${text}`]: 'ice' } },
      status: 400,
      code: 'API_BAD_BODY',
      message: 'tags',
    },
    {
      promise: `a tag that holds ${JSON.stringify(text)}`,
      body: { game_modes: ['tagged'], tags: { map: text } },
      status: 400,
      code: 'API_BAD_BODY',
      message: 'tags',
    },
  ]),
  {
    promise: 'tags where one of the game modes takes none',
    body: { game_modes: ['tagged', 'default'], tags: { map: 'ice' } },
    status: 400,
    code: 'MATCHMAKER_TAGS_DISABLED',
    message: '"default"',
  },
  {
    promise: 'a maximum where one of the game modes has its own',
    body: { game_modes: ['dynamic', 'default'], max_players: 2 },
    status: 400,
    code: 'MATCHMAKER_DYNAMIC_MAX_PLAYERS_DISABLED',
    message: '"default"',
  },
  ...[0, -1, 7].map((max_players) => ({
    promise: `a maximum of ${max_players} where it may be from 1 to 6`,
    body: { game_modes: ['dynamic'], max_players },
    status: 400,
    code: 'MATCHMAKER_DYNAMIC_MAX_PLAYERS_INVALID',
    message: 'from 1 to 6 in the game mode "dynamic"',
  })),
  {
    promise: 'half a player',
    body: { game_modes: ['dynamic'], max_players: 1.5 },
    status: 400,
    code: 'API_BAD_BODY',
    message: '"max_players"',
  },
  {
    promise: 'a region that there is not',
    body: { regions: ['local', 'moon'] },
    status: 404,
    code: 'MATCHMAKER_REGION_NOT_FOUND',
    message: '"moon"',
  },
  { promise: 'regions, but none', body: { regions: [] }, status: 400, code: 'API_BAD_BODY', message: '"regions"' },
  {
    promise: 'a game mode that is offered nowhere, even if nothing is to be created',
    body: { game_modes: ['nowhere'], prevent_auto_create_lobby: true },
    status: 400,
    code: 'MATCHMAKER_AUTO_CREATE_FAILED',
    message: 'None of the game modes',
  },
  {
    promise: 'a game mode that nobody may find',
    body: { game_modes: ['not_found'] },
    status: 400,
    code: 'MATCHMAKER_FIND_DISABLED',
    message: 'does not allow find',
  },
  {
    promise: 'several game modes, of which one must not be found, when nothing is to be created',
    body: { game_modes: ['default', 'not_found'], prevent_auto_create_lobby: true },
    status: 400,
    code: 'MATCHMAKER_FIND_DISABLED',
    message: 'does not allow find',
  },
  {
    promise: 'a game mode for players with an identity',
    body: { game_modes: ['with_identity'] },
    status: 400,
    code: 'MATCHMAKER_IDENTITY_REQUIRED',
    message: 'identity_requirement',
  },
  {
    promise: 'no lobby, and none may be created',
    body: { prevent_auto_create_lobby: true },
    status: 400,
    code: 'MATCHMAKER_NO_AVAILABLE_LOBBIES',
    message: 'prevent_auto_create_lobby',
  },
];

describe('find is refused', () => {
  let game: TestGame;
  beforeAll(async () => {
    game = await makePuppetGame(muster, { game_modes: GAME_MODES });
  });

  test.each(REFUSALS)('$promise', async ({ body, status, code, message }) => {
    const before = await ledger.measure();
    const answer = await find(muster, game, body);
    expect([answer.status, answer.body.code]).toEqual([status, code]);
    expect(answer.body.message).toContain(message);
    expect(await ledger.measure()).toEqual(before);
  });

  test('in a namespace whose version has no game modes', async () => {
    const { api } = muster;
    const path = `/cloud/games/${game.game_id}/namespaces/${game.staging_id}/tokens/public`;
    const { token } = await api.ok('POST', path, { token: game.cloud_token });
    const answer = await api.post('/matchmaker/lobbies/find', token, { game_modes: ['default'] });
    expect([answer.status, answer.body.code]).toEqual([404, 'MATCHMAKER_GAME_MODE_NOT_FOUND']);
  });
});

describe('find gives a seat', () => {
  test('in a lobby made for it, and the next one beside it, at both addresses', async () => {
    const game = await makePuppetGame(muster);
    const { api } = muster;
    const options = { token: game.public_token, body: { game_modes: ['default'], not_known: true } };
    const first = await api.ok('POST', '/matchmaker/lobbies/find', options);
    const second = await api.ok('POST', '/v1/lobbies/find', options);
    expect(second.lobby.lobby_id).toBe(first.lobby.lobby_id);
    expect(second.player.token).not.toBe(first.player.token);
    expect(await ledger.lobbiesOf(game.namespace_id)).toEqual([
      { lobby_id: first.lobby.lobby_id, player_count: 2, is_ready: true },
    ]);
  });

  test('with the lobby, the ports and the player in the shape that clients of both ages read', async () => {
    const ports = { game: { port: 80, protocol: 'http' }, 'chat-2': { port: 81, protocol: 'udp' } };
    const game = await makePuppetGame(muster, { ports });
    const { lobby, ports: top_ports, player, ...rest } = (await find(muster, game)).body;
    const port = { hostname: 'play.example.com', host: expect.any(String), port: expect.any(Number), is_tls: false };
    expect(top_ports).toEqual({ game: port, 'chat-2': port });
    for (const { host, port: number, hostname } of Object.values<typeof port>(top_ports)) {
      expect(host).toBe(`${hostname}:${number}`);
      expect(number).toBeWithin(26_000, 32_000);
    }
    expect(player).toEqual({ token: expect.stringMatching(/^player\.[\w-]+\.[\w-]+\.[\w-]+$/) });
    expect(lobby).toEqual({
      lobby_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      region: { region_id: 'local', display_name: 'Local' },
      ports: top_ports,
      player,
    });
    expect(rest).toEqual({});
  });

  test('with a range of ports as the developer chose it, without a host and a single port', async () => {
    const ports = { game: { port_range: { min: 28_000, max: 28_010 }, protocol: 'udp', proxy: 'none' } };
    const source = `const { SERVICE_API_ENDPOINT, SERVICE_TOKEN } = process.env;
      const headers = { authorization: 'Bearer ' + SERVICE_TOKEN };
      await fetch(SERVICE_API_ENDPOINT + '/matchmaker/lobbies/ready', { method: 'POST', headers });
      setInterval(() => {}, 1e9);`;
    const game = await makePuppetGame(muster, { ports, network_mode: 'host', source });
    const { status, body } = await find(muster, game);
    expect(status).toBe(200);
    const port_range = { min: 28_000, max: 28_010 };
    expect(body.ports).toEqual({
      game: { hostname: 'play.example.com', host: null, port: null, port_range, is_tls: false },
    });
  });

  test('where its tags are, and in a new lobby with them where they are not', async () => {
    const game = await makePuppetGame(muster, { game_modes: { default: { taggable: true } } });
    const [ice, sand] = [{ map: 'ice', mode: 'fast' }, { map: 'sand' }];
    const first = await seatOf(find(muster, game, { tags: ice }));
    const second = await seatOf(find(muster, game, { tags: sand }));
    expect(second.lobby_id).not.toBe(first.lobby_id);
    expect((await seatOf(find(muster, game, { tags: { map: 'ice' } }))).lobby_id).toBe(first.lobby_id);
    expect((await seatOf(find(muster, game, { tags: sand, prevent_auto_create_lobby: true }))).lobby_id).toBe(
      second.lobby_id,
    );
  });

  test('in the fullest lobby of the game modes asked for', async () => {
    const game_modes = { duel: { max_players: 3 }, melee: { max_players: 8 } };
    const game = await makePuppetGame(muster, { game_modes });
    const melee = await seatOf(find(muster, game, { game_modes: ['melee'] }));
    const duel = await seatOf(find(muster, game, { game_modes: ['duel'] }));
    const asked = { game_modes: ['melee', 'duel'], regions: ['local'] };
    const found = [];
    for (let player = 0; player < 3; player += 1) found.push((await seatOf(find(muster, game, asked))).lobby_id);
    expect(found).toEqual([duel.lobby_id, duel.lobby_id, melee.lobby_id]);
  });

  test('in a lobby that is as large as its first player wanted', async () => {
    const game_modes = { default: { allow_dynamic_max_players: true, max_players: 4, max_players_direct: 6 } };
    const game = await makePuppetGame(muster, { game_modes });
    const seats = [];
    for (let player = 0; player < 3; player += 1) seats.push(await seatOf(find(muster, game, { max_players: 2 })));
    const [first, second, third] = seats.map(({ lobby_id }) => lobby_id);
    expect(second).toBe(first ?? '');
    expect(third).not.toBe(first);
  });

  test('to more players than may wait for one thing, all in the lobby that they make together', async () => {
    const game = await makePuppetGame(muster, { game_modes: { default: { max_players: 100 } } });
    // The first is decided alone and makes the lobby; the others come while it starts.
    const answers = await Promise.all(Array.from({ length: 100 }, () => find(muster, game)));
    const codes = answers.filter(({ status }) => status !== 200).map(({ body }) => body.code);
    expect(codes).toEqual([]);
    const lobby_id = await onlyLobby(muster, game);
    expect(await ledger.lobbiesOf(game.namespace_id)).toEqual([{ lobby_id, player_count: 100, is_ready: true }]);
  });
});
