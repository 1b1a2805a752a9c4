import { expect, test } from 'bun:test';
import { LobbyChecks, type SeenLobby } from '../../src/cli/bots/lobby-checks.ts';

const LOBBY: SeenLobby = {
  lobby_id: 'one',
  lobby_group_name_id: 'duel',
  is_closed: false,
  is_outdated: false,
  total_player_count: 2,
  max_players_direct: 2,
};
let tokens = 0;
const seatAt = (began_at: number, changes: object = {}) => {
  tokens += 1;
  return { lobby_id: 'one', token: `token ${tokens}`, mode: 'duel', began_at, ...changes };
};

test('bots: seats in an open lobby of the wanted mode are right, up to its last seat', () => {
  const checks = new LobbyChecks();
  expect(checks.addSeat(seatAt(1))).toEqual([]);
  expect(checks.addSeat(seatAt(2))).toEqual([]);
  expect(checks.addLobbies([LOBBY], 3)).toEqual([]);
  expect(checks.addLobbies([], 4)).toEqual([]);
});

test('bots: a lobby with more players than any request may seat is a fault', () => {
  expect(new LobbyChecks().addLobbies([{ ...LOBBY, total_player_count: 3 }], 1)).toEqual([
    'an over-filled lobby (one)',
  ]);
});

test('bots: one seat for two bots is a fault', () => {
  const checks = new LobbyChecks();
  const seat = seatAt(1);
  expect(checks.addSeat(seat)).toEqual([]);
  expect(checks.addSeat({ ...seat })).toEqual(['a seat that another bot has (in the lobby one)']);
});

test('bots: a seat in another game mode is a fault', () => {
  const checks = new LobbyChecks();
  checks.addSeat(seatAt(1, { mode: 'race' }));
  expect(checks.addLobbies([LOBBY], 2)).toEqual(['a seat in another game mode (in the lobby one)']);
});

test.each([
  [{ is_closed: true }, 'a seat in a lobby that was closed to finds (one)'],
  [{ is_outdated: true }, 'a seat in a lobby of a version other than the live one (one)'],
])('bots: a seat of a find that began when the lobby was %p is a fault', (state, fault) => {
  const checks = new LobbyChecks();
  const lobby = { ...LOBBY, ...state };
  // The lobby is first seen like this at 10: a find that began earlier may have taken its seat before.
  checks.addSeat(seatAt(9));
  expect(checks.addLobbies([lobby], 10)).toEqual([]);
  checks.addSeat(seatAt(9.5));
  expect(checks.addLobbies([lobby], 11)).toEqual([]);
  checks.addSeat(seatAt(11.5));
  expect(checks.addLobbies([lobby], 12)).toEqual([fault]);
  expect(checks.addLobbies([lobby], 13)).toEqual([]);
});

test('bots: a seat in a lobby that was opened again is right', () => {
  const checks = new LobbyChecks();
  checks.addLobbies([{ ...LOBBY, is_closed: true }], 1);
  checks.addSeat(seatAt(2));
  expect(checks.addLobbies([LOBBY], 3)).toEqual([]);
  checks.addSeat(seatAt(4));
  expect(checks.addLobbies([{ ...LOBBY, is_closed: true }], 5)).toEqual([]);
});

test('bots: a seat in a lobby that was opened and closed again between two lists is right', () => {
  const checks = new LobbyChecks();
  const closedAt = (closed_ts: string) => [{ ...LOBBY, is_closed: true, closed_ts }];
  checks.addLobbies(closedAt('2026-01-01T12:00:00.000Z'), 1);
  checks.addSeat(seatAt(2));
  expect(checks.addLobbies(closedAt('2026-01-01T12:00:00.500Z'), 3)).toEqual([]);
  // A find that began in the second closing.
  checks.addSeat(seatAt(4));
  expect(checks.addLobbies(closedAt('2026-01-01T12:00:00.500Z'), 5)).toHaveLength(1);
});
