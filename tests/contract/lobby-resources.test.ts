import { beforeAll, describe, expect, test } from 'bun:test';
import type { TestGame } from '../support/game.ts';
import { connectGameServer, find, join, makeControlledGame, seatOf } from '../support/game-server.ts';
import { READY_SOURCE } from '../support/lobbies/room.ts';
import { outcomeOf, shareService } from '../support/suite.ts';
import { expectShape } from './exact-shapes.ts';
import { JOIN_RESPONSE } from './specification.ts';

const muster = shareService();

/** A version's port range; no proxy of the service is between players and such ports. */
const RANGE = { many: { protocol: 'udp', proxy: 'none', port_range: { min: 31_900, max: 31_903 } } };

describe('Lobby, player and ports', () => {
  let game: TestGame;
  // biome-ignore lint/suspicious/noExplicitAny: an answer is of the shape that is to be proved.
  let found: any;
  beforeAll(async () => {
    const game_modes = { default: { actions: { create: { enabled: true } } } };
    const ports = { game: { port: 80, protocol: 'http' }, voice: { port: 7_777, protocol: 'udp' } };
    game = await makeControlledGame(muster, { game_modes, ports });
    found = (await find(muster, game)).body;
  });

  test('are in the answers of find, join and create', async () => {
    expectShape(found, JOIN_RESPONSE);
    expectShape((await join(muster, game, found.lobby.lobby_id)).body, JOIN_RESPONSE);
    const body = { game_mode: 'default' };
    expectShape((await muster.api.post('/matchmaker/lobbies/create', game.public_token, body)).body, JOIN_RESPONSE);
  });

  test('ports are keyed by port name, and a single port has host, hostname and port', () => {
    expect(Object.keys(found.ports).sort()).toEqual(['game', 'voice']);
    for (const { hostname, host, port, is_tls } of Object.values<Record<string, unknown>>(found.ports)) {
      expect([host, port, is_tls]).toEqual([`${hostname}:${port}`, expect.any(Number), expect.any(Boolean)]);
    }
    expect(found.ports.game).not.toHaveProperty('port_range');
  });

  test('the region is a short human-readable identifier, the one in the list of regions', async () => {
    const { regions } = await muster.api.ok('GET', '/matchmaker/regions', { token: game.public_token });
    const { region_id, display_name } = found.lobby.region;
    expect(region_id).toMatch(/^[a-z0-9-]+$/);
    expect(regions).toMatchObject([{ region_id, region_display_name: display_name }]);
  });

  test('host and port are null when a port range is used', async () => {
    const ranged = await makeControlledGame(muster, { network_mode: 'host', ports: RANGE, source: READY_SOURCE });
    const { body } = await find(muster, ranged);
    expectShape(body, JOIN_RESPONSE);
    const { hostname } = body.ports.many;
    const { port_range } = RANGE.many;
    expect(body.ports).toEqual({ many: { hostname, host: null, port: null, port_range, is_tls: false } });
  });
});

describe('Development token port configuration', () => {
  let game: TestGame & { build_id: string };
  beforeAll(async () => {
    game = await makeControlledGame(muster);
  });

  const mock = async (ports?: object) => {
    const path = `/cloud/games/${game.game_id}/namespaces/${game.namespace_id}/tokens/development`;
    const body = { hostname: 'laptop', ...(ports ? { ports } : {}) };
    const { token } = await muster.api.ok('POST', path, { token: game.cloud_token, body });
    return (await find(muster, { ...game, public_token: token })).body;
  };

  test('each entry has a protocol, and a port or a port range, which find returns', async () => {
    const answer = await mock({
      plain: { protocol: 'http', port: 7_777 },
      safe: { protocol: 'https', port: 7_778 },
      many: { protocol: 'udp', port_range: { min: 9_000, max: 9_010 } },
    });
    expectShape(answer, JOIN_RESPONSE);
    const hostname = 'laptop';
    expect(answer.ports).toEqual({
      plain: { hostname, host: 'laptop:7777', port: 7_777, is_tls: false },
      safe: { hostname, host: 'laptop:7778', port: 7_778, is_tls: true },
      many: { hostname, host: null, port: null, port_range: { min: 9_000, max: 9_010 }, is_tls: false },
    });
  });

  test('the ports are optional', async () => {
    expect((await mock()).ports).toEqual({});
  });

  test('a port range requires network mode host', async () => {
    const validate = async (network_mode: string) => {
      const docker = { image_id: game.build_id, network_mode, ports: RANGE };
      const config = { matchmaker: { game_modes: { default: {} }, docker } };
      const path = `/cloud/games/${game.game_id}/versions/validate`;
      const body = { display_name: 'Ranges', config };
      return (await muster.api.ok('POST', path, { token: game.cloud_token, body })).errors;
    };
    expect(await validate('host')).toEqual([]);
    expect((await validate('bridge')).map(({ path }: { path: string[] }) => path.at(-1))).toEqual([
      'needs-host-network',
    ]);
  });

  test('ranges may overlap between containers', async () => {
    const ranged = await makeControlledGame(muster, {
      game_modes: { default: { max_players: 1 } },
      network_mode: 'host',
      ports: RANGE,
      source: READY_SOURCE,
    });
    const answers = await Promise.all([find(muster, ranged), find(muster, ranged)]);
    expect(new Set(answers.map(({ body }) => body.lobby.lobby_id)).size).toBe(2);
    expect(answers.map(({ body }) => body.ports.many.port_range)).toEqual([
      RANGE.many.port_range,
      RANGE.many.port_range,
    ]);
  });
});

describe('Version configuration (matchmaker section)', () => {
  const joinWhere = async (enabled: boolean) => {
    const game = await makeControlledGame(muster, { game_modes: { default: { actions: { join: { enabled } } } } });
    return outcomeOf(await join(muster, game, (await seatOf(find(muster, game))).lobby_id));
  };

  test('game_modes.<mode>.actions.join.enabled enables the action', async () => {
    expect(await joinWhere(true)).toBe('200');
    expect(await joinWhere(false)).toBe('400 MATCHMAKER_JOIN_DISABLED');
  });

  test('the configuration given when creating a custom lobby is its environment variable SERVICE_LOBBY_CONFIG', async () => {
    const game_modes = { default: { actions: { create: { enabled: true } } } };
    const game = await makeControlledGame(muster, { game_modes });
    const lobby_config = { map: 'ice', rounds: [1, null, 'two'] };
    const body = { game_mode: 'default', lobby_config };
    const { lobby } = (await muster.api.post('/matchmaker/lobbies/create', game.public_token, body)).body;
    const { environment } = await connectGameServer(muster, game, lobby.lobby_id);
    expect(JSON.parse(environment.SERVICE_LOBBY_CONFIG ?? '')).toEqual(lobby_config);
  });

  test('the lobby token is its environment variable SERVICE_TOKEN', async () => {
    const game = await makeControlledGame(muster);
    const { lobby_id, player_token } = await seatOf(find(muster, game));
    const { environment } = await connectGameServer(muster, game, lobby_id);
    const path = '/matchmaker/players/connected';
    expect(outcomeOf(await muster.api.post(path, environment.SERVICE_TOKEN, { player_token }))).toBe('200');
  });
});
