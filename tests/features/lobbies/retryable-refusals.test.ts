import { expect, test } from 'bun:test';
import { retryableAfter } from '../../../src/features/lobbies/matchmaking/rounds/retryable-refusals.ts';
import type { SeatRequest } from '../../../src/features/lobbies/matchmaking/rounds/seat-requests.ts';

const COMMON = { namespace_id: 'here', game_id: 'game', address: '', client: { name: 'near', players_max: 1 } };
const join = (player_id: string, namespace_id = 'here'): SeatRequest => ({
  ...COMMON,
  namespace_id,
  player_id,
  kind: 'join',
  lobby_id: 'lobby',
});
const search = { game_modes: [], regions: [], tags: {}, new_lobby: undefined };
const waiting = (player_id: string): SeatRequest => ({
  ...COMMON,
  player_id,
  version_id: 'one',
  search,
  kind: 'find',
  ticket: 'ticket',
});

test.each([
  ['every planned request got its seat: none', [join('ann'), join('bob')], [], [], []],
  ['an earlier request did not get its planned seat', [join('ann'), join('bob')], [], ['ann'], ['ann', 'bob']],
  ['a later request did not get its planned seat: only its own', [join('ann'), join('bob')], [], ['bob'], ['bob']],
  [
    'a later request, which was planned first, did not get its planned seat',
    [join('ann'), join('bob')],
    ['bob'],
    ['bob'],
    ['ann', 'bob'],
  ],
  [
    'a later request, which was planned before a waiting find, did not get its planned seat',
    [waiting('ann'), join('bob')],
    ['bob'],
    ['bob'],
    ['ann', 'bob'],
  ],
  [
    'an earlier request of another namespace did not get its planned seat: only its own',
    [join('ann', 'there'), join('bob')],
    [],
    ['ann'],
    ['ann'],
  ],
  ['a waiting request did not get its planned seat', [join('ann'), waiting('bob')], [], ['bob'], ['ann', 'bob']],
  ['a request outside the round did not get its planned seat', [join('ann')], [], ['eve'], ['ann']],
] as const)(
  'retryable refusals: the refusals of a round that are retryable, if %s',
  (_when, round, first, without_seat, retryable) => {
    const requests: SeatRequest[] = [...round];
    const planned_first = new Set(requests.filter(({ player_id }) => first.some((one) => one === player_id)));
    const not_placed = without_seat.map((player_id) => {
      const namespace_id = requests.find((one) => one.player_id === player_id)?.namespace_id ?? 'here';
      return { player_id, namespace_id };
    });
    const isRetryable = retryableAfter({ requests, planned_first, not_placed });
    expect(requests.filter(isRetryable).map(({ player_id }) => player_id)).toEqual([...retryable]);
  },
);
