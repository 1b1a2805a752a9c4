import { expect, test } from 'bun:test';
import { describeReceipt, type Receipt } from '../../src/cli/receipt.ts';
import { PASSED_OVER } from '../../src/features/lobbies/matchmaking/receipts/receipts-wire.ts';

const CHOSEN = '01a20b3a-45de-7073-97dd-d511edc9ad78';
const OTHER = '01a20b3a-45de-7073-97dd-4f16edc9ad79';

/** A receipt of a find that got a seat. */
function makeReceipt(parts: Partial<Receipt> = {}): Receipt {
  return {
    kind: 'find',
    request: { game_modes: ['default'], regions: ['local'], players: 1 },
    considered: [{ lobby_id: CHOSEN, game_mode_id: 'default', region_id: 'local', player_count: 2 }],
    rounds: 1,
    outcome: { lobby_id: CHOSEN, is_new: false },
    stages_ms: { checked: 1, queued: 1.2, decided: 3, seated: 9.4, answered: 10 },
    ...parts,
  };
}

test('receipt: each reason against a lobby has a text of its own', () => {
  const lines = PASSED_OVER.map((passed_over) => {
    const lobby = { lobby_id: OTHER, game_mode_id: 'ranked', region_id: 'fra', player_count: 7, passed_over };
    const described = describeReceipt(makeReceipt({ considered: [lobby] }));
    const line = described.find((one) => one.includes('4f16edc9ad79')) ?? '';
    expect(line).toStartWith('passed over   4f16edc9ad79 (ranked, fra, 7 seats taken): ');
    return line;
  });
  expect(lines).toContain('passed over   4f16edc9ad79 (ranked, fra, 7 seats taken): it had no free seat');
  expect(lines).toContain('passed over   4f16edc9ad79 (ranked, fra, 7 seats taken): it has other tags');
  expect(new Set(lines).size).toBe(PASSED_OVER.length);
});

test('receipt: a reason that this release does not know is shown as it is', () => {
  const lobby = { lobby_id: OTHER, game_mode_id: 'a', region_id: 'fra', player_count: 1, passed_over: 'too_new' };
  expect(describeReceipt(makeReceipt({ considered: [lobby] })).join('\n')).toContain('1 seat taken): too_new');
});

test('receipt: seats, requests, captchas, verifications and rounds are shown', () => {
  const SHOWN: [parts: Partial<Receipt>, message: string][] = [
    [{}, `find in 10 ms: a seat in the lobby d511edc9ad78 (default, local, 2 seats taken before)`],
    [{ considered: [], outcome: { lobby_id: CHOSEN, is_new: true } }, 'a seat in the new lobby d511edc9ad78'],
    [{ outcome: { code: 'MATCHMAKER_LOBBY_FULL' } }, 'find in 10 ms: refused with MATCHMAKER_LOBBY_FULL'],
    [{}, 'asked for     a seat in default at local'],
    [
      { request: { game_modes: ['a', 'b'], tags: { map: 'ice' }, players: 3, wait_ms: 5_000 } },
      'asked for     3 seats in a or b with map=ice, waiting up to 5 s',
    ],
    [{ kind: 'join', request: { lobby_id: OTHER, players: 1 } }, 'asked for     a seat of the lobby 4f16edc9ad79'],
    [{ request: { players: 1, max_players: 6, creates: false } }, 'asked for     a seat of a lobby for 6'],
    [{ captcha: { decision: 'solved_before' } }, 'captcha       solved recently from this address'],
    [
      { captcha: { decision: 'refused', provider: 'pow', reasons: ['expired'] } },
      'captcha       pow refused it (expired)',
    ],
    [{ verification: { is_accepted: true, status: 200 } }, 'verification  accepted (status 200)'],
    [{ verification: { is_accepted: false, failure: 'timeout' } }, 'verification  refused (timeout)'],
    [{ rounds: 3 }, 'rounds        3: it was decided 2 more times'],
    [{ considered: [], outcome: { code: 'X' } }, 'No lobby was considered.'],
    [{}, 'time          checked 1 ms, queued 1.2 ms, decided 3 ms, seated 9.4 ms, answered 10 ms'],
  ];
  for (const [parts, message] of SHOWN) expect(describeReceipt(makeReceipt(parts)).join('\n')).toContain(message);
  // A lobby that was planned but not reached is no reason.
  const planned = describeReceipt(makeReceipt({ outcome: { code: 'MATCHMAKER_LOBBY_STOPPED' } })).join('\n');
  expect(planned).toContain('planned       d511edc9ad78 (default, local, 2 seats taken)');
});
