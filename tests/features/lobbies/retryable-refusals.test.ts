import { expect, test } from 'bun:test';
import { retryableAfter } from '../../../src/features/lobbies/matchmaking/retryable-refusals.ts';
import type { SeatRequest } from '../../../src/features/lobbies/matchmaking/seat-requests.ts';

const PLACE = { namespace_id: 'here', game_id: 'game', address: '', client: { name: 'near', players_max: 1 } };
const join = (player_id: string, namespace_id = 'here'): SeatRequest => ({
  ...PLACE,
  namespace_id,
  player_id,
  kind: 'join',
  lobby_id: 'lobby',
});
const search = { game_modes: [], regions: [], tags: {}, new_lobby: undefined };
const waiting = (player_id: string): SeatRequest => ({
  ...PLACE,
  player_id,
  version_id: 'one',
  search,
  kind: 'find',
  ticket: 'ticket',
});

test.each([
  ['no request was left without a seat', [join('ann'), join('bob')], [], [], []],
  ['an earlier request was', [join('ann'), join('bob')], [], ['ann'], ['ann', 'bob']],
  ['a later request was, which keeps no other waiting', [join('ann'), join('bob')], [], ['bob'], ['bob']],
  ['a later request was, which was planned first', [join('ann'), join('bob')], ['bob'], ['bob'], ['ann', 'bob']],
  ['a later request was, before a waiting find', [waiting('ann'), join('bob')], ['bob'], ['bob'], ['ann', 'bob']],
  ['an earlier request for another lobby was', [join('ann', 'there'), join('bob')], [], ['ann'], ['ann']],
  ['a waiting request was', [join('ann'), waiting('bob')], [], ['bob'], ['ann', 'bob']],
  ['a request outside the round was', [join('ann')], [], ['eve'], ['ann']],
] as const)('retryable refusals: a refusal is retryable if %s', (_when, round, first, left, retryable) => {
  const requests: SeatRequest[] = [...round];
  const planned_first = new Set(requests.filter(({ player_id }) => first.some((one) => one === player_id)));
  const not_placed = left.map((player_id) => {
    const namespace_id = requests.find((one) => one.player_id === player_id)?.namespace_id ?? 'here';
    return { player_id, namespace_id };
  });
  const isRetryable = retryableAfter({ requests, planned_first, not_placed });
  expect(requests.filter(isRetryable).map(({ player_id }) => player_id)).toEqual([...retryable]);
});
