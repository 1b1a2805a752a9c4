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
const search = { game_modes: [], regions: [], tags: {}, creates: undefined };
const waiting = (player_id: string): SeatRequest => ({
  ...PLACE,
  player_id,
  version_id: 'one',
  search,
  kind: 'find',
  ticket: 'ticket',
});

test.each([
  ['no request was left without a seat', [join('ann'), join('bob')], [], []],
  ['an earlier request was', [join('ann'), join('bob')], ['ann'], ['ann', 'bob']],
  ['a later request was, which keeps no other waiting', [join('ann'), join('bob')], ['bob'], ['bob']],
  ['an earlier request for another lobby was', [join('ann', 'there'), join('bob')], ['ann'], ['ann']],
  ['a waiting request was', [join('ann'), waiting('bob')], ['bob'], ['ann', 'bob']],
  ['a request outside the round was', [join('ann')], ['eve'], ['ann']],
] as const)('retryable refusals: a refusal is retryable if %s', (_when, round, not_placed, retryable) => {
  const requests: SeatRequest[] = [...round];
  const isRetryable = retryableAfter(
    requests,
    not_placed.map((player_id) => {
      const namespace_id = requests.find((one) => one.player_id === player_id)?.namespace_id ?? 'here';
      return { player_id, namespace_id };
    }),
  );
  expect(requests.filter(isRetryable).map(({ player_id }) => player_id)).toEqual([...retryable]);
});
