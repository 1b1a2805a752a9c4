import { describe, expect, test } from 'bun:test';
import { planSearch } from '../../../src/features/lobbies/matchmaking/request-checks.ts';
import type { FindBody } from '../../../src/features/lobbies/wire.ts';
import { resolveMatchmaker } from '../../../src/features/versions/settings.ts';

/** All regions of the service, the recommended one first. */
const REGIONS = ['near', 'far', 'moon'];

const MODES = resolveMatchmaker(
  {
    game_modes: {
      everywhere: { max_players: 4, max_players_direct: 6, max_players_party: 5 },
      away: { regions: { moon: {}, far: {} } },
      on_the_moon: { regions: { moon: {} } },
      dynamic: { allow_dynamic_max_players: true },
      not_found: { actions: { find: { enabled: false } } },
      of_the_known: { actions: { find: { enabled: true, identity_requirement: 'registered' } } },
    },
  },
  REGIONS,
);

interface Case {
  promise: string;
  body: FindBody;
  /** The searched regions, and the game mode and region of the lobby to create. */
  searched: string[];
  creates: [string, string] | undefined;
}

const CASES: Case[] = [
  {
    promise: 'without regions, the recommended one',
    body: { game_modes: ['everywhere'] },
    searched: ['near'],
    creates: ['everywhere', 'near'],
  },
  {
    promise: 'without regions, the first one with one of the game modes',
    body: { game_modes: ['away'] },
    searched: ['far'],
    creates: ['away', 'far'],
  },
  {
    promise: 'the first game mode of the first region with any of them',
    body: { game_modes: ['on_the_moon', 'away'] },
    searched: ['far'],
    creates: ['away', 'far'],
  },
  {
    promise: 'all requested regions, and a new lobby in the first of them with the game mode',
    body: { game_modes: ['away'], regions: ['near', 'moon', 'far'] },
    searched: ['near', 'moon', 'far'],
    creates: ['away', 'moon'],
  },
  {
    promise: 'a new lobby has the first game mode, in the first region that offers it',
    body: { game_modes: ['on_the_moon', 'everywhere'], regions: ['near', 'moon'] },
    searched: ['near', 'moon'],
    creates: ['on_the_moon', 'moon'],
  },
  {
    promise: 'a game mode that does not allow find may be named beside that of the new lobby',
    body: { game_modes: ['everywhere', 'not_found'] },
    searched: ['near'],
    creates: ['everywhere', 'near'],
  },
  {
    promise: 'no lobby is created if the request forbids it',
    body: { game_modes: ['everywhere'], prevent_auto_create_lobby: true },
    searched: ['near'],
    creates: undefined,
  },
];

describe('planSearch: what a find searches and creates', () => {
  test.each(['not_found', 'of_the_known'])('no seat in %s, which does not allow find', (closed_one) => {
    for (const prevent_auto_create_lobby of [false, undefined]) {
      const body = { game_modes: ['everywhere', closed_one], prevent_auto_create_lobby };
      expect(planSearch(body, MODES, REGIONS).game_modes).toEqual(['everywhere']);
    }
  });

  test('a repeated name is searched once', () => {
    const body = { game_modes: ['everywhere', 'away', 'everywhere'], regions: ['far', 'near', 'far'] };
    expect(planSearch(body, MODES, REGIONS)).toMatchObject({
      game_modes: ['everywhere', 'away'],
      regions: ['far', 'near'],
    });
  });

  test.each(CASES)('$promise', ({ body, searched, creates }) => {
    const search = planSearch(body, MODES, REGIONS);
    expect(search.regions).toEqual(searched);
    expect(search.new_lobby && [search.new_lobby.game_mode, search.new_lobby.region]).toEqual(creates);
  });

  test('a new lobby has the maxima of its game mode', () => {
    expect(planSearch({ game_modes: ['everywhere'] }, MODES, REGIONS).new_lobby).toMatchObject({
      max_players_normal: 4,
      max_players_direct: 6,
      max_players_party: 5,
    });
  });

  test('a dynamic maximum replaces all three', () => {
    expect(planSearch({ game_modes: ['dynamic'], max_players: 2 }, MODES, REGIONS).new_lobby).toMatchObject({
      max_players_normal: 2,
      max_players_direct: 2,
      max_players_party: 2,
    });
  });

  const NOT_CREATABLE: { promise: string; body: FindBody; known: string[] }[] = [
    { promise: 'in no region at all', body: { game_modes: ['on_the_moon'] }, known: [] },
    {
      promise: 'in none of the requested ones',
      body: { game_modes: ['on_the_moon'], regions: ['near', 'far'] },
      known: REGIONS,
    },
  ];
  test.each(NOT_CREATABLE)('a lobby of a game mode that is offered $promise cannot be created', ({ body, known }) => {
    const refusal = expect.objectContaining({ code: 'MATCHMAKER_AUTO_CREATE_FAILED' });
    expect(() => planSearch(body, MODES, known)).toThrow(refusal);
  });
});
