import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import {
  freeDirectSeats,
  freeSeats,
  hasTags,
  LobbyIndex,
  type OpenLobby,
} from '../../../src/features/lobbies/matchmaking/lobby-index.ts';
import { planSeats } from '../../../src/features/lobbies/matchmaking/planner.ts';
import type { SeatRequest } from '../../../src/features/lobbies/matchmaking/seat-requests.ts';
import { surplusLobbies } from '../../../src/features/lobbies/rules.ts';
import { ANYBODY } from '../../support/game-limits.ts';

const NAMES = ['red', 'blue'] as const;
const LOBBIES = ['one', 'two', 'three', 'four', 'five'] as const;

const tags = fc.dictionary(fc.constantFrom(...NAMES), fc.constantFrom(...NAMES), { maxKeys: 2 });

const openLobby = fc
  .record({
    version_id: fc.constantFrom('old', 'new'),
    game_mode: fc.constantFrom(...NAMES),
    region: fc.constantFrom(...NAMES),
    tags,
    is_closed: fc.boolean(),
    publicity: fc.constantFrom('public', 'private', null),
    max_players_normal: fc.integer({ min: 1, max: 4 }),
    max_players_direct: fc.integer({ min: 1, max: 4 }),
    max_players_party: fc.integer({ min: 1, max: 4 }),
    player_count: fc.nat(4),
  })
  .map((lobby) => {
    const most = Math.max(lobby.max_players_normal, lobby.max_players_direct, lobby.max_players_party);
    return { ...lobby, player_count: Math.min(lobby.player_count, most) };
  });

const world = fc
  .uniqueArray(fc.constantFrom(...LOBBIES))
  .chain((ids) => fc.tuple(...ids.map((lobby_id) => openLobby.map((lobby): OpenLobby => ({ ...lobby, lobby_id })))));

const newLobby = fc.record({
  game_mode: fc.constantFrom(...NAMES),
  region: fc.constantFrom(...NAMES),
  tags,
  max_players_normal: fc.integer({ min: 1, max: 3 }),
  max_players_direct: fc.constant(3),
  max_players_party: fc.constant(3),
  publicity: fc.constant(null),
  lobby_config: fc.constant(undefined),
});

const search = fc
  .record({
    game_modes: fc.uniqueArray(fc.constantFrom(...NAMES), { minLength: 1 }),
    regions: fc.uniqueArray(fc.constantFrom(...NAMES), { minLength: 1 }),
    tags,
    creates: fc.option(newLobby, { nil: undefined }),
  })
  // As checkFind makes it: what is created has the tags and one of the modes and regions that were asked for.
  .map((one) => ({
    ...one,
    creates: one.creates && {
      ...one.creates,
      tags: one.tags,
      game_mode: one.game_modes[0] ?? '',
      region: one.regions[0] ?? '',
    },
  }));

const request: fc.Arbitrary<(player_id: string) => SeatRequest> = fc.oneof(
  fc.record({ version_id: fc.constantFrom('old', 'new'), search }).map(
    (find) =>
      (player_id: string): SeatRequest => ({ kind: 'find', ...BASE, ...find, player_id }),
  ),
  fc.constantFrom(...LOBBIES).map(
    (lobby_id) =>
      (player_id: string): SeatRequest => ({ kind: 'join', ...BASE, lobby_id, player_id }),
  ),
);

const BASE = { game_id: 'game', namespace_id: 'namespace', address: '', client: ANYBODY };

const requests = fc
  .array(request, { maxLength: 20 })
  .map((makers) => makers.map((make, index) => make(`player ${index}`)));

function indexOf(lobbies: OpenLobby[]): LobbyIndex {
  const index = new LobbyIndex();
  for (const lobby of lobbies) index.set(lobby);
  return index;
}

/** Runs through a plan request by request, with a plain list of lobbies, and says what is wrong with it. */
function faultsOf(all: SeatRequest[], lobbies: OpenLobby[]): string[] {
  const index = indexOf(lobbies);
  const { seats, new_lobbies, refusals } = planSeats(all, () => index);
  const now = new Map(lobbies.map((lobby) => [lobby.lobby_id, { ...lobby }]));
  const seat_of = new Map(seats.map(({ request: { player_id }, lobby_id }) => [player_id, lobby_id]));
  const refusal_of = new Map(refusals.map(({ request: { player_id }, code }) => [player_id, code]));
  const first_players = new Set(new_lobbies.flatMap((one) => one.first_players.map(({ player_id }) => player_id)));
  const faults: string[] = [];
  const expectThat = (holds: boolean, what: string) => void (holds || faults.push(what));

  expectThat(seat_of.size + refusal_of.size + first_players.size === all.length, 'each request has one outcome');
  for (const one of all) {
    const lobby = now.get(seat_of.get(one.player_id) ?? '');
    if (one.kind === 'join') {
      const target = now.get(one.lobby_id);
      const expected = !target ? 'MATCHMAKER_LOBBY_STOPPED' : 'MATCHMAKER_LOBBY_FULL';
      expectThat(!lobby || (lobby === target && freeDirectSeats(lobby) > 0), 'a join goes to its lobby, in bounds');
      expectThat(!target || freeDirectSeats(target) < 1 || lobby === target, 'a join is not refused a free place');
      expectThat(lobby !== undefined || refusal_of.get(one.player_id) === expected, 'a join is refused for its reason');
    } else {
      const suitable = [...now.values()].filter((open) => suits(open, one));
      const fewest = Math.min(...suitable.map((lobby) => freeSeats(lobby)));
      expectThat(lobby === undefined || suitable.includes(lobby), 'a find goes where there is an open place for it');
      expectThat(lobby === undefined || freeSeats(lobby) === fewest, 'a find goes to the fullest');
      expectThat(lobby !== undefined || suitable.length === 0, 'a find is not sent away from an open place');
      expectThat(!one.search.creates || !refusal_of.has(one.player_id), 'who may create is not refused');
    }
    if (lobby) lobby.player_count += 1;
  }
  for (const { lobby, first_players: together } of new_lobbies) {
    expectThat(together.length > 0 && together.length <= lobby.max_players_normal, 'a new lobby is not overfilled');
  }
  return faults;

  function suits(open: OpenLobby, find: Extract<SeatRequest, { kind: 'find' }>): boolean {
    const { game_modes, regions } = find.search;
    const is_open = !open.is_closed && open.publicity !== 'private' && freeSeats(open) > 0;
    return (
      is_open &&
      open.version_id === find.version_id &&
      game_modes.includes(open.game_mode) &&
      regions.includes(open.region) &&
      hasTags(open, find.search.tags)
    );
  }
}

describe('whatever comes', () => {
  test('each gets a place in bounds, the fullest there is, or the true reason', () => {
    fc.assert(
      fc.property(requests, world, (all, lobbies) => expect(faultsOf(all, lobbies)).toEqual([])),
      {
        numRuns: 2_000,
      },
    );
  });

  test('the same requests and lobbies give the same plan', () => {
    fc.assert(
      fc.property(requests, world, (all, lobbies) => {
        const [one, other] = [indexOf(lobbies), indexOf(lobbies)];
        expect(planSeats(all, () => one)).toEqual(planSeats(all, () => other));
      }),
      { numRuns: 500 },
    );
  });

  test('of empty lobbies each place keeps as many as it may, those that became empty last', () => {
    const empty = fc.record({ game_mode: fc.constantFrom(...NAMES), region: fc.constantFrom(...NAMES) });
    fc.assert(
      fc.property(fc.array(empty), fc.nat(3), fc.nat(3), (lobbies, red_max, blue_max) => {
        const maxOf = ({ game_mode }: { game_mode: string }) => (game_mode === 'red' ? red_max : blue_max);
        const surplus = new Set(surplusLobbies(lobbies, maxOf));
        for (const lobby of lobbies) {
          const { game_mode, region } = lobby;
          const alike = lobbies.filter((one) => one.game_mode === game_mode && one.region === region);
          const kept = alike.slice(Math.max(0, alike.length - maxOf(lobby)));
          expect(surplus.has(lobby)).toBe(!kept.includes(lobby));
        }
      }),
    );
  });
});
