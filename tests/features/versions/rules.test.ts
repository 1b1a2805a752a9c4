import { describe, expect, test } from 'bun:test';
import type { DockerConfig, GameModeConfig, MatchmakerConfig } from '../../../src/features/versions/config.ts';
import { versionProblems } from '../../../src/features/versions/rules.ts';
import { parseAllowList } from '../../../src/platform/outbound/addresses.ts';
import { expectAdvice } from '../../support/problem-advice.ts';

const BUILD = crypto.randomUUID();
const CONTEXT = {
  region_slugs: ['local', 'far'],
  build_ids: new Set<string>([BUILD]),
  is_site: false,
  shared_captchas: [],
  allowed_targets: parseAllowList([]),
};
const MODE = 'config/matchmaker/game-modes/*default*/';

/** Returns everything wrong with a version, as paths. */
function problemsOf(matchmaker: MatchmakerConfig, display_name = '1.0'): string[] {
  const problems = versionProblems({ display_name, config: { matchmaker } }, CONTEXT);
  expectAdvice(problems);
  return problems.map(({ path }) => path.join('/'));
}

/** Returns what is wrong with a version's only game mode, as paths below the game mode. */
function modeProblems(mode: GameModeConfig, general: MatchmakerConfig = {}): string[] {
  const docker = { image_id: BUILD };
  const problems = problemsOf({ docker, ...general, game_modes: { default: mode } });
  for (const problem of problems) expect(problem).toStartWith(MODE);
  return problems.map((problem) => problem.slice(MODE.length));
}

const dockerProblems = (docker: DockerConfig) => modeProblems({ docker: { image_id: BUILD, ...docker } });
const several = (count: number, name = 'name') => Array.from({ length: count }, (_, index) => `${name}${index}`);
const named = <Value>(names: string[], value: Value) => Object.fromEntries(names.map((name) => [name, value]));

describe('a version is refused', () => {
  const NAMES: [string, string][] = [
    ['', 'too-short'],
    ['x'.repeat(129), 'too-long'],
    [`${'é'.repeat(64)}x`, 'too-long'],
    [' x', 'invalid'],
    ['x\n', 'invalid'],
    ['x  y', 'invalid'],
    ['x\u202ey', 'invalid'],
  ];
  for (const [name, problem] of NAMES) {
    test(`for the name ${JSON.stringify(name.slice(0, 10))}: ${problem}`, () => {
      const docker = { image_id: BUILD };
      expect(problemsOf({ game_modes: { default: { docker } } }, name)).toEqual([`display-name/${problem}`]);
    });
  }

  test('for a matchmaker without a game mode', () => {
    for (const game_modes of [undefined, {}]) {
      expect(problemsOf(game_modes ? { game_modes } : {})).toEqual(['config/matchmaker/game-modes-meta/too-few']);
    }
  });

  test('for every wrong game mode, each by its name', () => {
    expect(problemsOf({ game_modes: { one: {}, two: { max_players: 0, docker: { image_id: BUILD } } } })).toEqual([
      'config/matchmaker/game-modes/*one*/no-runtime',
      'config/matchmaker/game-modes/*two*/player-counts/max-players-normal/too-low',
      'config/matchmaker/game-modes/*two*/player-counts/max-players-direct/too-low',
      'config/matchmaker/game-modes/*two*/player-counts/max-players-party/too-low',
    ]);
  });

  for (const name of ['', '-a', 'a-', 'a--b', 'a b', 'a.b', 'ä', 'a\nb', 'x'.repeat(65)]) {
    test(`for a game mode named ${JSON.stringify(name.slice(0, 10))}`, () => {
      expect(problemsOf({ game_modes: { [name]: { docker: { image_id: BUILD } } } })).toEqual([
        `config/matchmaker/game-modes/*${name}*/name-id-invalid`,
      ]);
    });
  }
});

describe('a game mode is refused', () => {
  const REGION = 'regions/*local*';
  const CASES: [string, GameModeConfig, string[]][] = [
    ['direct players below one', { max_players_direct: 0 }, ['player-counts/max-players-direct/too-low']],
    ['party players below one', { max_players_party: 0 }, ['player-counts/max-players-party/too-low']],
    ['an unknown region', { regions: { local: {}, moon: {} } }, ['regions/1/invalid']],
    ['an unknown tier', { regions: { local: { tier: 'basic-8d1' } } }, [`${REGION}/tier-name-id-invalid`]],
    [
      'an unknown tier for all regions',
      { tier: '' },
      [`${REGION}/tier-name-id-invalid`, 'regions/*far*/tier-name-id-invalid'],
    ],
    [
      'a minimum of idle lobbies above the maximum',
      { regions: { local: { idle_lobbies: { min: 2, max: 1 } } } },
      [`${REGION}/idle-lobbies/min-gt-max`],
    ],
    ['no build', { docker: {} }, ['no-build']],
    ['a build that is not of the game, or not complete', { docker: { image_id: crypto.randomUUID() } }, ['no-build']],
    ['its own docker settings without the build of all modes', { docker: { args: ['x'] } }, ['no-build']],
  ];
  for (const [what, mode, paths] of CASES) {
    test(`for ${what}`, () => {
      expect(modeProblems(mode)).toEqual(paths);
    });
  }

  test('for having nothing to run', () => {
    expect(problemsOf({ game_modes: { default: {} } })).toEqual([`${MODE}no-runtime`]);
  });
});

describe('arguments and variables are refused', () => {
  const CASES: [string, DockerConfig, string[]][] = [
    ['an empty argument', { args: ['a', ''] }, ['args/1/invalid']],
    ['an argument with the character zero', { args: ['a\0'] }, ['args/0/invalid']],
    ['a repeated argument', { args: ['a', 'b', 'a'] }, ['args/2/not-unique']],
    ['a variable without a name', { env: { '': 'x' } }, ['env-vars/**/key/invalid']],
    ['a name with =', { env: { 'A=B': 'x' } }, ['env-vars/*A=B*/key/invalid']],
    ['a name that begins with a digit', { env: { '1A': 'x' } }, ['env-vars/*1A*/key/invalid']],
    ['a name of two lines', { env: { 'A\nB': 'x' } }, ['env-vars/*A\nB*/key/invalid']],
    ['an empty value', { env: { A: '' } }, ['env-vars/*A*/value/invalid']],
    ['a value with the character zero', { env: { A: 'x\0' } }, ['env-vars/*A*/value/invalid']],
    ...['SERVICE_TOKEN', 'SERVICE_X', 'RIVET_TOKEN', 'PORT_game', 'MUSTER_SERVER_ID', 'BUN_BE_BUN'].map(
      (key): [string, DockerConfig, string[]] => [
        `the name ${key}, which Muster sets`,
        { env: { [key]: 'x' } },
        [`env-vars/*${key}*/key/conflicts-with-default`],
      ],
    ),
  ];
  for (const [what, docker, paths] of CASES) {
    test(`for ${what}`, () => {
      expect(dockerProblems(docker)).toEqual(paths);
    });
  }

  test('also in those of all game modes, which are added to those of each', () => {
    const general = { docker: { image_id: BUILD, env: { SERVICE_TOKEN: 'x', A: '' } } };
    expect(modeProblems({ docker: { image_id: BUILD, env: { A: 'x' } } }, general)).toEqual([
      'env-vars/*SERVICE_TOKEN*/key/conflicts-with-default',
    ]);
    const many = { docker: { image_id: BUILD, env: named(several(40, 'GENERAL'), 'x') } };
    const own = { docker: { image_id: BUILD, env: named(several(25, 'OWN'), 'x') } };
    expect(modeProblems(own, many)).toEqual(['env-vars-too-many']);
  });
});

describe('a value is accepted at its limit, and refused beyond', () => {
  const everywhere = (problem: string) => [`regions/*local*/${problem}`, `regions/*far*/${problem}`];
  const LIMITS: [string, number, (count: number) => GameModeConfig, string[]][] = [
    [
      'direct players',
      256,
      (max_players_direct) => ({ max_players_direct }),
      ['player-counts/max-players-direct/too-high'],
    ],
    [
      'players of a party',
      256,
      (max_players_party) => ({ max_players_party }),
      ['player-counts/max-players-party/too-high'],
    ],
    [
      'idle lobbies at least',
      16,
      (min) => ({ idle_lobbies: { min, max: 32 } }),
      everywhere('idle-lobbies/min-too-high'),
    ],
    ['idle lobbies at most', 32, (max) => ({ idle_lobbies: { min: 0, max } }), everywhere('idle-lobbies/max-too-high')],
  ];
  const DOCKER_LIMITS: [string, number, (count: number) => DockerConfig, string[]][] = [
    ['arguments', 64, (count) => ({ args: several(count) }), ['args-too-many']],
    ['bytes of an argument', 512, (count) => ({ args: ['x'.repeat(count)] }), ['args/0/too-long']],
    ['variables', 64, (count) => ({ env: named(several(count), 'x') }), ['env-vars-too-many']],
    ['bytes of a value', 512, (count) => ({ env: { A: 'x'.repeat(count) } }), ['env-vars/*A*/value/too-long']],
    [
      'bytes of a name',
      64,
      (count) => ({ env: { ['A'.repeat(count)]: 'x' } }),
      [`env-vars/*${'A'.repeat(65)}*/key/too-long`],
    ],
  ];
  for (const [what, max, make, paths] of LIMITS) {
    test(`${max} ${what}`, () => {
      expect(modeProblems(make(max))).toEqual([]);
      expect(modeProblems(make(max + 1))).toEqual(paths);
    });
  }
  for (const [what, max, make, paths] of DOCKER_LIMITS) {
    test(`${max} ${what}`, () => {
      expect(dockerProblems(make(max))).toEqual([]);
      expect(dockerProblems(make(max + 1))).toEqual(paths);
    });
  }

  test('256 players, which is also the default for direct and party players', () => {
    expect(modeProblems({ max_players: 256 })).toEqual([]);
    expect(modeProblems({ max_players: 257 })).toEqual(
      ['normal', 'direct', 'party'].map((which) => `player-counts/max-players-${which}/too-high`),
    );
  });

  test('32 game modes, and the others are not checked', () => {
    const make = (count: number) => ({ docker: { image_id: BUILD }, game_modes: named(several(count, 'mode'), {}) });
    expect(problemsOf(make(32))).toEqual([]);
    expect(problemsOf(make(33))).toEqual(['config/matchmaker/game-modes-meta/too-many']);
    expect(problemsOf({ ...make(200), docker: {} })).toHaveLength(1 + 32);
  });

  test('128 bytes of the name, and 64 of the name of a game mode', () => {
    const game_modes = { ['m'.repeat(64)]: { docker: { image_id: BUILD } } };
    expect(problemsOf({ game_modes }, 'x'.repeat(128))).toEqual([]);
  });
});

describe('a version is accepted', () => {
  test('without a matchmaker', () => {
    expect(versionProblems({ display_name: '1', config: {} }, CONTEXT)).toEqual([]);
  });

  test('with a build id in any spelling', () => {
    expect(modeProblems({ docker: { image_id: BUILD.toUpperCase() } })).toEqual([]);
  });

  test('with a build and regions that another mode has too', () => {
    const docker = { image_id: BUILD };
    expect(
      problemsOf({
        regions: { local: { tier: 'basic-1d16' } },
        game_modes: { Deathmatch_2: { docker }, 'a-b': { docker, regions: { far: {} } } },
      }),
    ).toEqual([]);
  });
});

test('versions: a long label is not repeated in full for each problem below it', () => {
  const label = 'x'.repeat(100_000);
  const [problem] = problemsOf({ game_modes: { [label]: { docker: { image_id: BUILD } } } });
  expect(problem).toBe(`config/matchmaker/game-modes/*${'x'.repeat(128)}*/name-id-invalid`);
});
