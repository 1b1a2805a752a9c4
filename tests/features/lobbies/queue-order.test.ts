import { describe, expect, test } from 'bun:test';
import { LobbyIndex, type RunningLobby } from '../../../src/features/lobbies/matchmaking/lobby-cache/lobby-index.ts';
import { type Plan, planSeats } from '../../../src/features/lobbies/matchmaking/rounds/planner.ts';
import type { FindRequest, SeatRequest } from '../../../src/features/lobbies/matchmaking/rounds/seat-requests.ts';
import type { QueuedFind } from '../../../src/features/lobbies/tables.ts';
import { UNLIMITED_CLIENT } from '../../support/game-limits.ts';

const MAXIMA = { max_players_normal: 4, max_players_direct: 4, max_players_party: 4 };
const NEW = { game_mode: 'red', region: 'here', tags: {}, ...MAXIMA, publicity: null, lobby_config: undefined };
const SEARCH = { game_modes: ['red'], regions: ['here'], tags: {} };
const BASE = { game_id: 'game', namespace_id: 'namespace', address: '', client: UNLIMITED_CLIENT };

function lobby(lobby_id: string, player_count: number, more: Partial<RunningLobby> = {}): RunningLobby {
  const place = { version_id: 'new', game_mode: 'red', region: 'here', tags: {} };
  return { lobby_id, ...place, is_closed: false, publicity: null, ...MAXIMA, player_count, ...more };
}

function find(
  player_id: string,
  more: Partial<FindRequest> = {},
  search: Partial<FindRequest['search']> = {},
): FindRequest {
  const wanted = { ...SEARCH, new_lobby: NEW, ...search };
  return { kind: 'find', ...BASE, player_id, version_id: 'new', search: wanted, is_explained: true, ...more };
}

const waiting = (place: number, more: Partial<QueuedFind> = {}): QueuedFind => {
  return { ticket: `ticket ${place}`, place, seats: 1, version_id: 'new', ...SEARCH, ...more };
};

/** Returns the outcome of each request: a lobby, a new one by its number, or a refusal. */
function outcomes(requests: SeatRequest[], lobbies: RunningLobby[], queue: QueuedFind[]): Record<string, string> {
  const index = new LobbyIndex();
  for (const one of lobbies) index.set(one);
  index.queue = queue;
  return describePlan(planSeats(requests, () => index));
}

/** Returns the outcomes of a round as `seat-rounds.ts` decides it: requests without a seat are planned a second time. */
function outcomesOfTwoPlans(requests: SeatRequest[], lobbies: RunningLobby[], queue: QueuedFind[]) {
  const index = new LobbyIndex();
  for (const one of lobbies) index.set(one);
  index.queue = queue;
  const first = planSeats(requests, () => index);
  const seated = new Set(first.assignments.map(({ request }) => request));
  const others = requests.filter((request) => !seated.has(request));
  const second = planSeats(others, () => index, first.assignments);
  return describePlan({ ...second, assignments: [...first.assignments, ...second.assignments] });
}

function describePlan({ assignments, new_lobbies, refusals, postponed, candidates }: Plan): Record<string, string> {
  return Object.fromEntries([
    ...assignments.map(({ request, lobby_id }) => [request.player_id, lobby_id]),
    ...new_lobbies.flatMap(({ first_requests }, index) =>
      first_requests.map(({ player_id }) => [player_id, `new ${index}`]),
    ),
    ...postponed.map(({ player_id }) => [player_id, 'postponed']),
    ...refusals.map(({ request, code }) => {
      const [first] = candidates.get(request) ?? [];
      return [request.player_id, `${code}${first?.passed_over ? ` (${first.passed_over})` : ''}`];
    }),
  ]);
}

const REFUSED = 'MATCHMAKER_TOO_MANY_LOBBIES (awaited)';

describe('queue order: a later request does not get', () => {
  test('a seat for which an earlier one waits, even if that one does not fit yet', () => {
    expect(outcomes([find('late')], [lobby('one', 3)], [waiting(1)])).toEqual({ late: REFUSED });
    expect(outcomes([find('late')], [lobby('one', 3)], [waiting(1, { seats: 4 })])).toEqual({ late: REFUSED });
  });

  test('a seat for which an earlier one waits by the previous version, in any region', () => {
    const before = waiting(1, { version_id: 'old', regions: ['there'] });
    expect(outcomes([find('late')], [lobby('one', 3)], [before])).toEqual({ late: REFUSED });
    const others = [waiting(1, { version_id: 'old', game_modes: ['blue'] }), waiting(2, { regions: ['there'] })];
    expect(outcomes([find('late')], [lobby('one', 3)], others)).toEqual({ late: 'one' });
  });

  test('a seat for which an earlier one waits; it gets one that no other could use, behind any number of them', () => {
    const tags = { room: 'vip' };
    const reserved = Array.from({ length: 200 }, (_, number) => lobby(`reserved ${number}`, 3, { tags }));
    const party = waiting(1, { seats: 2, tags });
    expect(outcomes([find('late')], reserved, [party])).toEqual({ late: REFUSED });
    expect(outcomes([find('late')], [...reserved, lobby('free', 2)], [party])).toEqual({ late: 'free' });
  });

  test('any other, after 131,072 comparisons in one plan', () => {
    const tags = { room: 'vip' };
    const lobbies = Array.from({ length: 256 }, (_, number) => lobby(`reserved ${number}`, 3, { tags }));
    const lateAfter = (count: number) => {
      const refused = Array.from({ length: count }, (_, number) => find(`vip ${number}`, {}, { tags }));
      const all = refused.map((one) => ({ ...one, is_explained: false }));
      const party = waiting(1, { seats: 2, tags });
      return outcomes([...all, find('late')], [...lobbies, lobby('free', 2)], [party]).late;
    };
    expect(lateAfter(510)).toBe('free');
    expect(lateAfter(512)).toBe(REFUSED);
  });

  test('a lobby of its own while an earlier one waits for one', () => {
    const other = waiting(1, { game_modes: ['blue'] });
    expect(outcomes([find('late')], [], [other])).toEqual({ late: 'MATCHMAKER_TOO_MANY_LOBBIES' });
  });

  test('a seat in a lobby that an earlier one creates, if another waits in between', () => {
    const queue = [waiting(1), waiting(2)];
    const requests = [find('late'), find('first', { ticket: 'ticket 1' })];
    expect(outcomes(requests, [], queue)).toEqual({ first: 'new 0', late: 'MATCHMAKER_TOO_MANY_LOBBIES' });
  });

  test('a lobby above the limit of the namespace', () => {
    const full = [lobby('one', 4), lobby('two', 4, { publicity: 'private' })];
    expect(outcomes([find('late', { lobby_count_max: 2 })], full, [])).toEqual({
      late: 'MATCHMAKER_TOO_MANY_LOBBIES (full)',
    });
    const three = ['red', 'green', 'blue'].map((color) =>
      find(color, { lobby_count_max: 2 }, { tags: { color }, new_lobby: { ...NEW, tags: { color } } }),
    );
    expect(outcomes(three, [], [])).toEqual({ red: 'new 0', green: 'new 1', blue: 'MATCHMAKER_TOO_MANY_LOBBIES' });
  });
});

describe('queue order: a waiting request', () => {
  test('is decided before those that do not wait, in order', () => {
    const requests = [
      find('late'),
      find('second', { ticket: 'ticket 7' }),
      find('first', { ticket: 'ticket 3' }),
      find('lost', { ticket: 'ticket 9' }),
    ];
    const queue = [waiting(7), waiting(3)];
    expect(outcomes(requests, [lobby('one', 2)], queue)).toEqual({
      first: 'one',
      second: 'one',
      late: 'new 0',
      // The two earlier ones could use the lobby until their seats are committed.
      lost: 'postponed',
    });
  });

  test('with a seat of the first plan keeps no later one of the second plan from a new lobby', () => {
    const requests = [find('late'), find('second', { ticket: 'ticket 7' }), find('first', { ticket: 'ticket 3' })];
    const queue = [waiting(7), waiting(3)];
    expect(outcomesOfTwoPlans(requests, [lobby('one', 2)], queue)).toEqual({
      first: 'one',
      second: 'one',
      late: 'new 0',
    });
  });

  test('with a seat of the first plan does not refuse a later one a free seat, which it gets after the commit', () => {
    const full = [lobby('one', 3), lobby('two', 3)];
    const requests = [find('first', { ticket: 'ticket 1' }), find('late', { lobby_count_max: 2 })];
    expect(outcomesOfTwoPlans(requests, full, [waiting(1)])).toEqual({ first: 'one', late: 'postponed' });
  });

  test('keeps later ones out of a lobby until the round is committed if its party does not fit there', () => {
    const queue = [waiting(1), waiting(2, { seats: 4 }), waiting(3)];
    const requests = [find('third', { ticket: 'ticket 3' }), find('first', { ticket: 'ticket 1' })];
    const party = find('party', { ticket: 'ticket 2', others: ['a', 'b', 'c'] });
    expect(outcomes([...requests, party], [], queue)).toEqual({ first: 'new 0', party: 'new 1', third: 'postponed' });
    expect(outcomes([...requests, party], [lobby('one', 3)], queue)).toEqual({
      first: 'one',
      party: 'new 0',
      third: 'new 1',
    });
  });

  test('creates a lobby if no earlier one waits, and later ones get seats in it', () => {
    const queue = [waiting(1), waiting(2)];
    const requests = [find('second', { ticket: 'ticket 2' }), find('first', { ticket: 'ticket 1' }), find('late')];
    expect(outcomes(requests, [], queue)).toEqual({ first: 'new 0', second: 'new 0', late: 'new 0' });
    expect(outcomes([find('second', { ticket: 'ticket 2' })], [], queue)).toEqual({
      second: 'MATCHMAKER_TOO_MANY_LOBBIES',
    });
  });

  test.each<[string, Partial<QueuedFind>]>([
    ['another game mode', { game_modes: ['blue'] }],
    ['another region', { regions: ['there'] }],
    ['a tag that the lobby lacks', { tags: { color: 'red' } }],
    ['more seats than the lobby could ever have', { seats: 5 }],
  ])('for %s does not reserve a seat', (_what, more) => {
    expect(outcomes([find('late')], [lobby('one', 3)], [waiting(1, more)])).toEqual({ late: 'one' });
  });

  test('for a seat in a lobby does not delay joins', () => {
    const joining: SeatRequest = { kind: 'join', ...BASE, player_id: 'friend', lobby_id: 'one' };
    expect(outcomes([joining], [lobby('one', 3)], [waiting(1)])).toEqual({ friend: 'one' });
  });
});

test('queue order: a waiting request delays none of another namespace', () => {
  const [busy, quiet] = [new LobbyIndex(), new LobbyIndex()];
  busy.queue = [waiting(1)];
  quiet.set(lobby('one', 3));
  const { assignments } = planSeats([find('late')], (namespace_id) => (namespace_id === 'namespace' ? quiet : busy));
  expect(assignments.map(({ lobby_id }) => lobby_id)).toEqual(['one']);
});
