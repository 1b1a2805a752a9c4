import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { find, join, makeControlledGame, seatOf } from '../support/game-server.ts';
import { openTestService, type TestService } from '../support/service.ts';
import { outcomeOf } from '../support/suite.ts';
import { makeTenant } from '../support/tenant.ts';
import { type EndpointRow, testRows, type World } from './endpoint-rows.ts';
import { EMPTY, listOf, mapOf, record } from './exact-shapes.ts';
import { JOIN_RESPONSE } from './specification.ts';

const CLIENT_RESPONSE = record({ client_response: 'string' });
const CAPTCHA = record({ 'hcaptcha?': CLIENT_RESPONSE, 'turnstile?': CLIENT_RESPONSE });
const CHECKS = {
  captcha: { hcaptcha: { client_response: 'solved' }, turnstile: { client_response: 'solved' } },
  verification_data: { anything: [1, null, 'text'] },
};

/** The callers of the reference API: players' clients, and the servers of lobbies. */
const CLIENTS = ['public', 'development'] as const;
const SERVERS = ['lobby', 'development'] as const;

const ROWS: EndpointRow[] = [
  {
    name: 'lobbies.join',
    method: 'POST',
    path: '/matchmaker/lobbies/join',
    allow: CLIENTS,
    request_shape: record({ lobby_id: 'string', 'captcha?': CAPTCHA, 'verification_data?': 'any' }),
    sample: ({ tenant }) => ({ lobby_id: tenant.ids.lobby_id, ...CHECKS }),
    response_shape: JOIN_RESPONSE,
  },
  {
    name: 'lobbies.setClosed',
    method: 'PUT',
    path: '/matchmaker/lobbies/closed',
    allow: SERVERS,
    request_shape: record({ is_closed: 'boolean' }),
    sample: () => ({ is_closed: false }),
    response_shape: EMPTY,
  },
  {
    name: 'lobbies.find',
    method: 'POST',
    path: '/v1/lobbies/find',
    allow: CLIENTS,
    // The specification leaves game_modes, regions and prevent_auto_create_lobby open; they are those of Rivet.
    request_shape: record({
      game_modes: listOf('string'),
      'regions?': listOf('string'),
      'prevent_auto_create_lobby?': 'boolean',
      'tags?': mapOf('string'),
      'max_players?': 'integer',
      'captcha?': CAPTCHA,
      'verification_data?': 'any',
    }),
    sample: () => ({
      game_modes: ['free'],
      regions: ['local'],
      prevent_auto_create_lobby: false,
      tags: { map: 'ice' },
      max_players: 4,
      ...CHECKS,
    }),
    // The specification leaves the response open; it is that of join, as in Rivet.
    response_shape: JOIN_RESPONSE,
  },
];

let opened: TestService;
let world: World;
beforeAll(async () => {
  opened = await openTestService();
  const tenant = await makeTenant(opened);
  // A game of its own, with a game mode that allows everything that find accepts.
  const game_modes = { free: { taggable: true, allow_dynamic_max_players: true } };
  const { api } = opened;
  const config = { matchmaker: { game_modes, docker: { image_id: tenant.ids.build_id, ports: {} } } };
  const game = `/cloud/games/${tenant.ids.game_id}`;
  const token = tenant.tokens.cloud;
  const { version_id } = await api.ok('POST', `${game}/versions`, { token, body: { display_name: 'free', config } });
  await api.ok('PUT', `${game}/namespaces/${tenant.ids.namespace_id}/version`, { token, body: { version_id } });
  world = { api, tenant };
});
afterAll(() => opened[Symbol.asyncDispose]());

describe('matchmaker endpoints', () => {
  testRows(ROWS, () => world);
});

test('lobbies.join uses the direct player count configured for the lobby group, and find does not', async () => {
  const game_modes = { default: { max_players: 1, max_players_direct: 2 } };
  const game = await makeControlledGame(opened, { game_modes });
  const { lobby_id } = await seatOf(find(opened, game));
  const full = await find(opened, game, { prevent_auto_create_lobby: true });
  expect(outcomeOf(full)).toBe('400 MATCHMAKER_NO_AVAILABLE_LOBBIES');
  expect((await seatOf(join(opened, game, lobby_id))).lobby_id).toBe(lobby_id);
  expect(outcomeOf(await join(opened, game, lobby_id))).toBe('400 MATCHMAKER_LOBBY_FULL');
});

test('lobbies.join answers with the address of the lobby and a player token of its own', async () => {
  const game = await makeControlledGame(opened);
  const found = await find(opened, game);
  const { lobby, player, ports } = (await join(opened, game, found.body.lobby.lobby_id)).body;
  expect(lobby.lobby_id).toBe(found.body.lobby.lobby_id);
  expect(lobby.region.region_id).toBe('local');
  expect(player.token).not.toBe(found.body.player.token);
  expect(ports.game.host).toBe(`${ports.game.hostname}:${ports.game.port}`);
  const response = await fetch(`http://${ports.game.host}`);
  expect((await response.json()).SERVICE_LOBBY_ID).toBe(lobby.lobby_id);
});

test('lobbies.find filters by tags, and accepts a dynamic maximum player count', async () => {
  const game_modes = { default: { taggable: true, allow_dynamic_max_players: true } };
  const game = await makeControlledGame(opened, { game_modes });
  const ice = { tags: { map: 'ice' }, max_players: 2 };
  const { lobby_id } = await seatOf(find(opened, game, ice));
  const only_there = { tags: { map: 'ice' }, prevent_auto_create_lobby: true };
  const sand = { ...only_there, tags: { map: 'sand' } };
  expect(outcomeOf(await find(opened, game, sand))).toBe('400 MATCHMAKER_NO_AVAILABLE_LOBBIES');
  expect((await seatOf(find(opened, game, only_there))).lobby_id).toBe(lobby_id);
  expect(outcomeOf(await find(opened, game, only_there))).toBe('400 MATCHMAKER_NO_AVAILABLE_LOBBIES');
});
