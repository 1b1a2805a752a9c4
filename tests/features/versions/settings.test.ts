import { describe, expect, test } from 'bun:test';
import type { GameModeConfig, MatchmakerConfig } from '../../../src/features/versions/config.ts';
import { resolveMatchmaker } from '../../../src/features/versions/settings.ts';

const SLUGS = ['far', 'local'];
const BUILD = crypto.randomUUID();

/** Returns the settings of a matchmaker's only game mode. */
function settingsOf(mode: GameModeConfig, general: MatchmakerConfig = {}, slugs = SLUGS) {
  const settings = resolveMatchmaker({ ...general, game_modes: { default: mode } }, slugs).get('default');
  if (!settings) throw new Error('the game mode exists');
  return settings;
}

const regionsOf = (mode: GameModeConfig, general?: MatchmakerConfig) =>
  Object.fromEntries(settingsOf(mode, general).regions);

test('settings: a version without a matchmaker has no game modes', () => {
  expect(resolveMatchmaker(undefined, SLUGS).size).toBe(0);
  expect(resolveMatchmaker({ max_players: 2 }, SLUGS).size).toBe(0);
});

test('settings: missing values have defaults', () => {
  const defaults = { tier: 'basic-1d1', idle_lobbies: { min: 0, max: 0 } };
  expect(settingsOf({})).toEqual({
    name: 'default',
    regions: new Map([
      ['far', defaults],
      ['local', defaults],
    ]),
    max_players_normal: 32,
    max_players_direct: 32,
    max_players_party: 32,
    is_listable: true,
    is_taggable: false,
    allows_dynamic_max_players: false,
    find: { enabled: true },
    join: { enabled: true },
    create: undefined,
    runtime: undefined,
  });
});

test('settings: given values are kept', () => {
  const actions = {
    find: { enabled: false },
    join: { enabled: false },
    create: { enabled: true, enable_public: true },
  };
  const mode = { listable: false, taggable: true, allow_dynamic_max_players: true, actions };
  expect(settingsOf(mode)).toMatchObject({
    is_listable: false,
    is_taggable: true,
    allows_dynamic_max_players: true,
    ...actions,
  });
});

describe('settings: the players of a mode are its own, those of all modes, or the number for find', () => {
  const CASES: [GameModeConfig, MatchmakerConfig, [number, number, number]][] = [
    [{ max_players: 4 }, { max_players: 8 }, [4, 4, 4]],
    [{}, { max_players: 8 }, [8, 8, 8]],
    [{ max_players: 4 }, { max_players_direct: 6, max_players_party: 7 }, [4, 6, 7]],
    [{ max_players_direct: 5, max_players_party: 3 }, { max_players_direct: 6, max_players_party: 7 }, [32, 5, 3]],
  ];
  for (const [mode, general, [normal, direct, party]] of CASES) {
    test(`${JSON.stringify(mode)} of ${JSON.stringify(general)}`, () => {
      expect(settingsOf(mode, general)).toMatchObject({
        max_players_normal: normal,
        max_players_direct: direct,
        max_players_party: party,
      });
    });
  }
});

describe('settings: regions', () => {
  const idle = (max: number) => ({ min: 0, max });

  test('are those of the mode, those of all modes, or all regions', () => {
    expect(Object.keys(regionsOf({ regions: { local: {} } }, { regions: { far: {} } }))).toEqual(['local']);
    expect(Object.keys(regionsOf({}, { regions: { far: {} } }))).toEqual(['far']);
    expect(Object.keys(regionsOf({}))).toEqual(SLUGS);
    expect(regionsOf({ regions: {} })).toEqual({});
  });

  test("have the tier and idle lobbies of the nearest level: the mode's region, the region of all modes, the mode, all modes", () => {
    const general = {
      tier: 'basic-1d2',
      idle_lobbies: idle(4),
      regions: { local: { tier: 'basic-1d8', idle_lobbies: idle(2) } },
    };
    const mode = { tier: 'basic-1d4', idle_lobbies: idle(3) };
    const own = { tier: 'basic-1d16', idle_lobbies: idle(1) };
    expect(regionsOf({ ...mode, regions: { local: own } }, general)).toEqual({ local: own });
    expect(regionsOf({ ...mode, regions: { local: {}, far: {} } }, general)).toEqual({
      local: general.regions.local,
      far: mode,
    });
    expect(regionsOf({ regions: { far: {} } }, general)).toEqual({ far: { tier: 'basic-1d2', idle_lobbies: idle(4) } });
  });

  test('are found by their own names only, not by inherited properties', () => {
    const { regions } = settingsOf({ regions: { constructor: {}, toString: {} } }, { regions: {} });
    expect([...regions.values()]).toEqual([
      { tier: 'basic-1d1', idle_lobbies: idle(0) },
      { tier: 'basic-1d1', idle_lobbies: idle(0) },
    ]);
  });
});

describe('settings: what a lobby runs', () => {
  const general = {
    docker: {
      image_id: BUILD,
      args: ['general'],
      env: { SHARED: 'general', ALL: 'general' },
      network_mode: 'host',
      ports: { all: { port: 80 } },
    },
  } as const satisfies MatchmakerConfig;

  test('is that of all modes by default; the default protocol of a port is https', () => {
    const { image_id, args, env, network_mode } = general.docker;
    expect(
      settingsOf({}, { docker: { image_id, args: [...args], env, network_mode, ports: general.docker.ports } }).runtime,
    ).toEqual({
      build_id: BUILD,
      arguments: ['general'],
      environment: { SHARED: 'general', ALL: 'general' },
      network_mode: 'host',
      ports: { all: { protocol: 'https', port: 80, port_range: undefined, presence: undefined } },
    });
  });

  test("is the mode's own as a whole, except that its variables are added to those of all modes", () => {
    const own_build = crypto.randomUUID();
    const port_range = { min: 26_000, max: 26_001 };
    const own = {
      image_id: own_build,
      env: { SHARED: 'own' },
      ports: { one: { protocol: 'udp', port_range } },
    } as const;
    expect(
      settingsOf({ docker: own }, { docker: { image_id: BUILD, args: ['general'], env: general.docker.env } }).runtime,
    ).toEqual({
      build_id: own_build,
      arguments: [],
      environment: { SHARED: 'own', ALL: 'general' },
      network_mode: 'bridge',
      ports: { one: { protocol: 'udp', port: undefined, port_range, presence: undefined } },
    });
  });

  test('is nothing without a build', () => {
    expect(settingsOf({ docker: {} }, { docker: { image_id: BUILD } }).runtime).toBeUndefined();
  });
});
