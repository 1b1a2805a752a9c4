import { describe, expect, test } from 'bun:test';
import { find, makeControlledGame, seatOf, waitForFirstLobby } from '../../support/game-server.ts';
import { shareService } from '../../support/suite.ts';

const muster = shareService({ MUSTER_SERVER_HOST: 'play.example.com' });

describe('find', () => {
  test('creates a lobby for the first player and gives the next one a seat in it, at both paths', async () => {
    const game = await makeControlledGame(muster);
    const { api } = muster;
    const options = { token: game.public_token, body: { game_modes: ['default'], not_known: true } };
    const first = await api.ok('POST', '/matchmaker/lobbies/find', options);
    const second = await api.ok('POST', '/v1/lobbies/find', options);
    expect(second.lobby.lobby_id).toBe(first.lobby.lobby_id);
    expect(second.player.token).not.toBe(first.player.token);
    expect(await muster.inspector.lobbiesOf(game.namespace_id)).toEqual([
      { lobby_id: first.lobby.lobby_id, player_count: 2, is_ready: true },
    ]);
  });

  test('counts a member that is null as left out, as clients in C# write it', async () => {
    const game = await makeControlledGame(muster);
    const options = { token: game.public_token };
    const left_out = { regions: null, captcha: null, tags: null, max_players: null, verification_data: null };
    const found = await muster.api.ok('POST', '/v1/lobbies/find', {
      ...options,
      body: { game_modes: ['default'], ...left_out },
    });
    const { lobby_id } = found.lobby;
    const joined = await muster.api.ok('POST', '/matchmaker/lobbies/join', {
      ...options,
      body: { lobby_id, captcha: null },
    });
    expect(joined.lobby.lobby_id).toBe(lobby_id);
    const created = { game_mode: 'default', region: null, publicity: null, lobby_config: null };
    const { status, body } = await muster.api.post('/matchmaker/lobbies/create', game.public_token, created);
    expect([status, body.code]).toEqual([400, 'MATCHMAKER_CUSTOM_LOBBIES_DISABLED']);
  });

  test('answers with the lobby, the ports and the player in the shapes of old and new clients', async () => {
    const { min, max } = muster.config.servers.server_ports;
    const ports = { game: { port: 80, protocol: 'http' }, 'chat-2': { port: 81, protocol: 'udp' } };
    const game = await makeControlledGame(muster, { ports });
    const { lobby, ports: top_ports, player, ...rest } = (await find(muster, game)).body;
    const port = { hostname: 'play.example.com', host: expect.any(String), port: expect.any(Number), is_tls: false };
    expect(top_ports).toEqual({ game: port, 'chat-2': port });
    for (const { host, port: number, hostname } of Object.values<typeof port>(top_ports)) {
      expect(host).toBe(`${hostname}:${number}`);
      expect(number).toBeWithin(min, max + 1);
    }
    expect(player).toEqual({ token: expect.stringMatching(/^player\.[\w-]+\.[\w-]+\.[\w-]+$/) });
    expect(lobby).toEqual({
      code: expect.stringMatching(/^[A-Z2-9]{8}$/),
      lobby_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      region: { region_id: 'local', display_name: 'Local' },
      ports: top_ports,
      player,
    });
    expect(rest).toEqual({});
  });

  test('answers with the port range of the version, and with null as host and port', async () => {
    const ports = { game: { port_range: { min: 28_000, max: 28_010 }, protocol: 'udp', proxy: 'none' } };
    const source = `const { SERVICE_API_ENDPOINT, SERVICE_TOKEN } = process.env;
      const headers = { authorization: 'Bearer ' + SERVICE_TOKEN };
      await fetch(SERVICE_API_ENDPOINT + '/matchmaker/lobbies/ready', { method: 'POST', headers });
      setInterval(() => {}, 1e9);`;
    const game = await makeControlledGame(muster, { ports, network_mode: 'host', source });
    const { status, body } = await find(muster, game);
    expect(status).toBe(200);
    const port_range = { min: 28_000, max: 28_010 };
    expect(body.ports).toEqual({
      game: { hostname: 'play.example.com', host: null, port: null, port_range, is_tls: false },
    });
  });

  test('gives a seat in a lobby with the requested tags, or creates one with them', async () => {
    const game = await makeControlledGame(muster, { game_modes: { default: { taggable: true } } });
    const [ice, sand] = [{ map: 'ice', mode: 'fast' }, { map: 'sand' }];
    const first = await seatOf(find(muster, game, { tags: ice }));
    const second = await seatOf(find(muster, game, { tags: sand }));
    expect(second.lobby_id).not.toBe(first.lobby_id);
    expect((await seatOf(find(muster, game, { tags: { map: 'ice' } }))).lobby_id).toBe(first.lobby_id);
    expect((await seatOf(find(muster, game, { tags: sand, prevent_auto_create_lobby: true }))).lobby_id).toBe(
      second.lobby_id,
    );
  });

  test('gives a seat in the fullest lobby of the requested game modes', async () => {
    const game_modes = { duel: { max_players: 3 }, melee: { max_players: 8 } };
    const game = await makeControlledGame(muster, { game_modes });
    const melee = await seatOf(find(muster, game, { game_modes: ['melee'] }));
    const duel = await seatOf(find(muster, game, { game_modes: ['duel'] }));
    const search = { game_modes: ['melee', 'duel'], regions: ['local'] };
    const found = [];
    for (let player = 0; player < 3; player += 1) found.push((await seatOf(find(muster, game, search))).lobby_id);
    expect(found).toEqual([duel.lobby_id, duel.lobby_id, melee.lobby_id]);
  });

  test('creates a lobby with the maximum that its first player requests', async () => {
    const game_modes = { default: { allow_dynamic_max_players: true, max_players: 4, max_players_direct: 6 } };
    const game = await makeControlledGame(muster, { game_modes });
    const seats = [];
    for (let player = 0; player < 3; player += 1) seats.push(await seatOf(find(muster, game, { max_players: 2 })));
    const [first, second, third] = seats.map(({ lobby_id }) => lobby_id);
    expect(second).toBe(first ?? '');
    expect(third).not.toBe(first);
  });

  test('gives seats in one new lobby to more players than may watch one topic', async () => {
    const game = await makeControlledGame(muster, { game_modes: { default: { max_players: 100 } } });
    // The first find is a round of its own and creates the lobby; the others come while it starts.
    const answers = await Promise.all(Array.from({ length: 100 }, () => find(muster, game)));
    const codes = answers.filter(({ status }) => status !== 200).map(({ body }) => body.code);
    expect(codes).toEqual([]);
    const lobby_id = await waitForFirstLobby(muster, game);
    expect(await muster.inspector.lobbiesOf(game.namespace_id)).toEqual([
      { lobby_id, player_count: 100, is_ready: true },
    ]);
  });
});
