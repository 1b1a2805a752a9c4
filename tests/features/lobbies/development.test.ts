import { beforeAll, describe, expect, test } from 'bun:test';
import type { TestGame } from '../../support/game.ts';
import {
  connectGameServer,
  createGameServerClient,
  find,
  join,
  makeControlledGame,
  seatOf,
} from '../../support/game-server.ts';
import { outcomeOf, shareService } from '../../support/suite.ts';

const NO_LOBBY = '00000000-0000-0000-0000-000000000000';

const PORTS = {
  game: { protocol: 'http', port: 7_777 },
  secure: { protocol: 'https', port: 7_778 },
  'raw-tls': { protocol: 'tcp_tls', port: 7_779 },
  voice: { protocol: 'udp', port_range: { min: 20_000, max: 20_010 } },
};

const muster = shareService();
let game: TestGame;
let token: string;
let development: ReturnType<typeof createGameServerClient>;
beforeAll(async () => {
  game = await makeControlledGame(muster);
  token = await makeToken(game, { hostname: 'laptop.local', ports: PORTS });
  development = createGameServerClient(muster, token);
});

async function makeToken({ game_id, namespace_id, cloud_token }: TestGame, body: object): Promise<string> {
  const path = `/cloud/games/${game_id}/namespaces/${namespace_id}/tokens/development`;
  return (await muster.api.ok('POST', path, { token: cloud_token, body })).token;
}

const asDeveloper = (): TestGame => ({ ...game, public_token: token });
const playerToken = async () => (await seatOf(find(muster, asDeveloper()))).player_token;

describe('a development token', () => {
  test.each(['find', 'join', 'create'])('gets an answer of %s with its own host name and ports', async (action) => {
    const bodies = {
      find: { game_modes: ['of a version to come'], regions: ['moon'], max_players: -1, tags: { map: 'ice' } },
      join: { lobby_id: crypto.randomUUID() },
      create: { game_mode: 'of a version to come' },
    };
    const before = await muster.inspector.measure();
    const body = bodies[action === 'find' || action === 'join' ? action : 'create'];
    const answer = await muster.api.post(`/matchmaker/lobbies/${action}`, token, body);
    const hostname = 'laptop.local';
    const port_range = { min: 20_000, max: 20_010 };
    const ports = {
      game: { hostname, host: 'laptop.local:7777', port: 7_777, is_tls: false },
      secure: { hostname, host: 'laptop.local:7778', port: 7_778, is_tls: true },
      'raw-tls': { hostname, host: 'laptop.local:7779', port: 7_779, is_tls: true },
      voice: { hostname, host: null, port: null, port_range, is_tls: false },
    };
    const player = { token: expect.stringMatching(/^dev_player\./) };
    const region = { region_id: 'dev-lcl', display_name: 'Local' };
    expect([answer.status, answer.body]).toEqual([
      200,
      { lobby: { lobby_id: NO_LOBBY, region, ports, player }, ports, player },
    ]);
    expect(await muster.inspector.measure()).toEqual(before);
  });

  test('gets a new player token each time, and no ports if it has none', async () => {
    expect(await playerToken()).not.toBe(await playerToken());
    const bare = await makeToken(game, { hostname: '::1' });
    expect((await find(muster, { ...game, public_token: bare })).body.ports).toEqual({});
  });

  test('has an IPv6 address in brackets', async () => {
    const six = await makeToken(game, { hostname: '::1', ports: { game: { protocol: 'tcp', port: 80 } } });
    const { ports } = (await find(muster, { ...game, public_token: six })).body;
    expect(ports.game).toEqual({ hostname: '::1', host: '[::1]:80', port: 80, is_tls: false });
  });

  test('may make the calls of a lobby, which change nothing', async () => {
    const player_token = await playerToken();
    const before = await muster.inspector.measure();
    const answers = [
      await development.ready(),
      await development.ready(),
      await development.setClosed(true),
      await development.setState({ map: 'ice' }),
      await development.getState(NO_LOBBY),
      await development.connected(player_token),
      await development.connected(player_token),
      await development.disconnected(player_token),
    ];
    expect(answers.map(({ status, body }) => [status, body])).toEqual(answers.map(() => [200, {}]));
    expect(await muster.inspector.measure()).toEqual(before);
  });

  test.each([
    { promise: 'find without game modes', path: 'lobbies/find', body: {} },
    { promise: 'join without a lobby', path: 'lobbies/join', body: {} },
    { promise: 'create without a game mode', path: 'lobbies/create', body: {} },
    { promise: 'connected without a player', path: 'players/connected', body: {} },
  ])('is refused for the same invalid bodies: $promise', async ({ path, body }) => {
    expect(outcomeOf(await muster.api.post(`/matchmaker/${path}`, token, body))).toBe('400 API_BAD_BODY');
  });

  test('cannot connect a real player, nor can a real lobby connect its players', async () => {
    const seat = await seatOf(find(muster, game));
    const game_server = await connectGameServer(muster, game, seat.lobby_id);
    const real = await development.connected(seat.player_token);
    expect(outcomeOf(real)).toBe('400 TOKEN_ERROR');
    expect(real.body.message).toContain('it is of the kind player, but must be of the kind development_player');
    expect(outcomeOf(await game_server.connected(await playerToken()))).toBe('400 TOKEN_ERROR');
    expect(outcomeOf(await development.disconnected(seat.player_token))).toBe('400 TOKEN_ERROR');
    expect(outcomeOf(await game_server.connected(seat.player_token))).toBe('200');
  });

  test('does not change a real lobby whose id it sends', async () => {
    const seat = await seatOf(find(muster, game));
    const game_server = await connectGameServer(muster, game, seat.lobby_id);
    await game_server.setState({ map: 'real' });
    const before = await muster.inspector.measure();
    expect((await seatOf(join(muster, asDeveloper(), seat.lobby_id))).lobby_id).toBe(NO_LOBBY);
    expect((await development.getState(seat.lobby_id)).body).toEqual({});
    expect(await muster.inspector.measure()).toEqual(before);
    expect((await game_server.getState(seat.lobby_id)).body).toEqual({ map: 'real' });
  });

  test('cannot connect a player of another namespace', async () => {
    const other = await makeControlledGame(muster);
    const stranger = createGameServerClient(muster, await makeToken(other, { hostname: 'laptop.local' }));
    const answer = await stranger.connected(await playerToken());
    expect(outcomeOf(answer)).toBe('400 TOKEN_ERROR');
    expect(answer.body.message).toContain('it belongs to another namespace');
  });
});
