import { expect, test } from 'bun:test';
import { retryableAfter } from '../../../src/features/lobbies/matchmaking/retryable-refusals.ts';
import type { SeatRequest } from '../../../src/features/lobbies/matchmaking/seat-requests.ts';

const PLACE = { namespace_id: 'here', game_id: 'game', address: '', client: { name: 'near', players_max: 1 } };
const join = (player_id: string, namespace_id = 'here'): SeatRequest => ({
  ...{ ...PLACE, namespace_id, player_id },
  kind: 'join',
  lobby_id: 'lobby',
});
const search = { game_modes: [], regions: [], tags: {}, creates: undefined };
const waiting = (player_id: string): SeatRequest => ({
  ...{ ...PLACE, player_id, version_id: 'one', search },
  kind: 'find',
  ticket: 'ticket',
});

test.each([
  ['nobody went without a seat', [join('ann'), join('bob')], [], []],
  ['one who came before did', [join('ann'), join('bob')], ['ann'], ['ann', 'bob']],
  [
    'one who came after did: he keeps nobody waiting, however often he asks',
    [join('ann'), join('bob')],
    ['bob'],
    ['bob'],
  ],
  ['one who came before did, elsewhere', [join('ann', 'there'), join('bob')], ['ann'], ['ann']],
  ['one who waits for his turn did', [join('ann'), waiting('bob')], ['bob'], ['ann', 'bob']],
  ['one who is not in the round did', [join('ann')], ['eve'], ['ann']],
] as const)('a no is retryable when %s', (_when, round, not_placed, retryable) => {
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
