import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { LobbyIndex, type RunningLobby } from '../../../src/features/lobbies/matchmaking/lobby-cache/lobby-index.ts';
import { planSeats } from '../../../src/features/lobbies/matchmaking/rounds/planner.ts';
import type { SeatRequest } from '../../../src/features/lobbies/matchmaking/rounds/seat-requests.ts';
import { surplusLobbies } from '../../../src/features/lobbies/rules.ts';
import { UNLIMITED_CLIENT } from '../../support/game-limits.ts';
import { freeSeats, fullest, hasRoom, suits } from '../../support/matchmaker/matchmaking-rules.ts';
import { searchOf } from '../../support/matchmaker/simulated-queue.ts';

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
  .chain((ids) => fc.tuple(...ids.map((lobby_id) => openLobby.map((lobby): RunningLobby => ({ ...lobby, lobby_id })))));

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
    new_lobby: fc.option(newLobby, { nil: undefined }),
  })
  // Like planSearch: the lobby to create has the tags, and one of the requested modes and regions.
  .map((one) => ({
    ...one,
    new_lobby: one.new_lobby && {
      ...one.new_lobby,
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

const BASE = { game_id: 'game', namespace_id: 'namespace', address: '', client: UNLIMITED_CLIENT };

const requests = fc
  .array(request, { maxLength: 20 })
  .map((makers) => makers.map((make, index) => make(`player ${index}`)));

function indexOf(lobbies: RunningLobby[]): LobbyIndex {
  const index = new LobbyIndex();
  for (const lobby of lobbies) index.set(lobby);
  return index;
}

/** Follows a plan request by request with a plain list of lobbies, and returns what is wrong with it. */
function faultsOf(all: SeatRequest[], lobbies: RunningLobby[]): string[] {
  const index = indexOf(lobbies);
  const { assignments, new_lobbies, refusals } = planSeats(all, () => index);
  const now = new Map(lobbies.map((lobby) => [lobby.lobby_id, stateOf(lobby)]));
  const seat_of = new Map(assignments.map(({ request: { player_id }, lobby_id }) => [player_id, lobby_id]));
  const refusal_of = new Map(refusals.map(({ request: { player_id }, code }) => [player_id, code]));
  const first_players = new Set(new_lobbies.flatMap((one) => one.first_requests.map(({ player_id }) => player_id)));
  const faults: string[] = [];
  const expectThat = (holds: boolean, what: string) => void (holds || faults.push(what));

  expectThat(seat_of.size + refusal_of.size + first_players.size === all.length, 'each request has one outcome');
  for (const one of all) {
    const lobby = now.get(seat_of.get(one.player_id) ?? '');
    if (one.kind === 'join') {
      const target = now.get(one.lobby_id);
      const has_room = target !== undefined && hasRoom(target, JOIN);
      const expected = !target ? 'MATCHMAKER_LOBBY_STOPPED' : 'MATCHMAKER_LOBBY_FULL';
      expectThat(!lobby || (lobby === target && has_room), 'a join goes to its lobby, in bounds');
      expectThat(!has_room || lobby === target, 'a join is not refused a free seat');
      expectThat(lobby !== undefined || refusal_of.get(one.player_id) === expected, 'a join is refused for its reason');
    } else {
      const suitable = [...now.values()].filter((open) => suits(open, searchOf(one)));
      const chosen = fullest(suitable, 1);
      expectThat(lobby === undefined || (suitable.includes(lobby) && freeSeats(lobby, FIND) > 0), 'a find has a seat');
      expectThat(lobby === undefined || chosen.includes(lobby), 'a find goes to the fullest');
      expectThat(lobby !== undefined || chosen.length === 0, 'a find is not refused a free seat');
      expectThat(!one.search.new_lobby || !refusal_of.has(one.player_id), 'a find that may create is not refused');
    }
    if (lobby) lobby.taken += 1;
  }
  for (const { lobby, first_requests: together } of new_lobbies) {
    expectThat(together.length > 0 && together.length <= lobby.max_players_normal, 'a new lobby is not overfilled');
  }
  return faults;
}

const JOIN = { kind: 'join', players: 1 } as const;
const FIND = { kind: 'find', players: 1 } as const;

function stateOf({ version_id: version, player_count: taken, ...lobby }: RunningLobby) {
  const { game_mode, region, tags, publicity, is_closed } = lobby;
  const { max_players_normal: normal, max_players_direct: direct, max_players_party: party } = lobby;
  return { version, game_mode, region, tags, publicity, is_closed, maxima: { normal, direct, party }, taken };
}

describe('plan: for any requests and lobbies', () => {
  test('each request gets a seat within the limits in the fullest lobby, or the true reason', () => {
    fc.assert(
      fc.property(requests, world, (all, lobbies) => expect(faultsOf(all, lobbies)).toEqual([])),
      {
        numRuns: 2_000,
      },
    );
  });

  test('equal requests and lobbies have equal plans', () => {
    fc.assert(
      fc.property(requests, world, (all, lobbies) => {
        const [one, other] = [indexOf(lobbies), indexOf(lobbies)];
        expect(planSeats(all, () => one)).toEqual(planSeats(all, () => other));
      }),
      { numRuns: 500 },
    );
  });

  test('each pool keeps as many open and closed empty lobbies as it may: ready ones, then those that became empty last; without room for others, no closed ones', () => {
    const empty = fc.record({
      game_mode: fc.constantFrom(...NAMES),
      region: fc.constantFrom(...NAMES),
      is_closed: fc.boolean(),
      create_ts: fc.constant(new Date(0)),
      idle_ts: fc.constant(new Date(1)),
      ready_ts: fc.constantFrom(null, new Date(0)),
      closed_ts: fc.constant(null),
    });
    fc.assert(
      fc.property(fc.array(empty), fc.nat(3), fc.nat(3), fc.boolean(), (lobbies, red_max, blue_max, has_room) => {
        const maxOf = ({ game_mode }: { game_mode: string }) => (game_mode === 'red' ? red_max : blue_max);
        const surplus = new Set(surplusLobbies(lobbies, { now: new Date(2), has_room }, maxOf));
        for (const lobby of lobbies) {
          const nameOf = ({ game_mode, region, is_closed }: typeof lobby) => `${game_mode} ${region} ${is_closed}`;
          const alike = lobbies.filter((one) => nameOf(one) === nameOf(lobby));
          const best_last = [...alike.filter(({ ready_ts }) => !ready_ts), ...alike.filter(({ ready_ts }) => ready_ts)];
          const max = lobby.is_closed && !has_room ? 0 : maxOf(lobby);
          const kept = best_last.slice(Math.max(0, alike.length - max));
          expect(surplus.has(lobby)).toBe(!kept.includes(lobby));
        }
      }),
    );
  });
});
