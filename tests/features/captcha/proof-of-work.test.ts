import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { solveChallenge } from 'altcha-lib';
import { deriveKey } from 'altcha-lib/algorithms/pbkdf2';
import fc from 'fast-check';
import { createProofsOfWork } from '../../../src/features/captcha/proof-of-work.ts';
import type { Challenge } from '../../../src/features/captcha/wire.ts';
import { type CaptchaChecks, openCaptchaChecks, outcomeOfCheck } from '../../support/captcha/captcha-checks.ts';
import { openCaptchaProvider } from '../../support/captcha/captcha-provider.ts';
import { createTestClock } from '../../support/clock.ts';
import { openTestDatabase } from '../../support/database/database.ts';

const DIFFICULTY = 3;
const CONFIG = { requests_before_reverify: 1, verification_ttl: 60_000, pow: { difficulty: DIFFICULTY } };
const CHALLENGE_TTL_MS = 300_000;
const FAILED = 'CAPTCHA_CAPTCHA_FAILED';

const opened = new AsyncDisposableStack();
const clock = createTestClock();
let checks: CaptchaChecks;
let second: CaptchaChecks;
beforeAll(async () => {
  const provider = opened.use(await openCaptchaProvider());
  const { address: database_address } = opened.use(await openTestDatabase());
  checks = opened.use(await openCaptchaChecks({ database_address, clock, provider }));
  second = opened.use(await openCaptchaChecks({ database_address, clock, provider }));
}, 300_000);
afterAll(() => opened.disposeAsync());

const encode = (payload: unknown) => Buffer.from(JSON.stringify(payload)).toString('base64');
const game = () => ({ namespace_id: crypto.randomUUID(), config: CONFIG });
async function solve(challenge: Challenge) {
  const solution = await solveChallenge({ challenge, deriveKey });
  if (!solution) throw new Error('the challenge was not solved');
  return { challenge, solution };
}
/** Returns a solution, with changed parts or without. */
const use = async (
  place: ReturnType<typeof game>,
  change: (payload: Awaited<ReturnType<typeof solve>>) => unknown = (payload) => payload,
) => {
  const payload = await solve(await checks.proofs.challenge(place.namespace_id, DIFFICULTY));
  const client_response = encode(change(structuredClone(payload)));
  return await checks.check(place, { captcha: { pow: { client_response } } });
};

describe('a solution is refused', () => {
  test.each([
    ['', 'unreadable'],
    ['no base64 at all', 'unreadable'],
    [encode(null), 'unreadable'],
    [encode([]), 'unreadable'],
    [encode({ challenge: {}, solution: {} }), 'unreadable'],
    [Buffer.from('['.repeat(6_000)).toString('base64'), 'unreadable'],
    [Buffer.from('{"challenge":').toString('base64'), 'unreadable'],
  ])('if it is unreadable: %p', async (client_response, reason) => {
    const { decision, error } = await checks.check(game(), { captcha: { pow: { client_response } } });
    expect(error?.code).toBe(FAILED);
    expect(decision).toEqual({ decision: 'refused', provider: 'pow', reasons: [reason] });
  });

  type Payload = Awaited<ReturnType<typeof solve>>;
  const parameters = (more: object) => (payload: Payload) => ({
    ...payload,
    challenge: { ...payload.challenge, parameters: { ...payload.challenge.parameters, ...more } },
  });
  const solution = (more: object) => (payload: Payload) => ({
    ...payload,
    solution: { ...payload.solution, ...more },
  });
  const CHANGES: [string, (payload: Payload) => unknown, string][] = [
    ['for an easier challenge', parameters({ cost: 1 }), 'invalid-signature'],
    ['for a shorter prefix', parameters({ keyPrefix: '00' }), 'invalid-signature'],
    ['for another algorithm', parameters({ algorithm: 'SHA-256' }), 'invalid-signature'],
    ['for a challenge that expires later', parameters({ expiresAt: 4_000_000_000 }), 'invalid-signature'],
    ['for a challenge that never expires', parameters({ expiresAt: 0 }), 'invalid-signature'],
    [
      'for a challenge with another name',
      parameters({ data: { challenge_id: 'x', namespace_id: 'y' } }),
      'invalid-signature',
    ],
    ['for a challenge with an additional member', parameters({ memoryCost: 1 }), 'invalid-signature'],
    [
      'for an unsigned challenge',
      (payload) => ({ ...payload, challenge: { ...payload.challenge, signature: '' } }),
      'invalid-signature',
    ],
    ['with another key', solution({ derivedKey: '00'.repeat(32) }), 'wrong'],
    ['without a key', solution({ derivedKey: '' }), 'wrong'],
    [
      'with only the known prefix of the key',
      (payload) => solution({ derivedKey: payload.challenge.parameters.keyPrefix })(payload),
      'wrong',
    ],
    [
      'with the key in upper case',
      (payload) => solution({ derivedKey: payload.solution.derivedKey.toUpperCase() })(payload),
      'wrong',
    ],
    ['with a number above the maximum', solution({ counter: 2 ** 40 }), 'wrong'],
  ];
  for (const [what, change, reason] of CHANGES) {
    test(what, async () => {
      const { decision, error } = await use(game(), change);
      expect(error?.code).toBe(FAILED);
      expect(decision?.reasons).toEqual([reason]);
    });
  }

  test('for a challenge of another namespace, where it may be easier', async () => {
    const payload = await solve(await checks.proofs.challenge(crypto.randomUUID(), 1));
    const { decision } = await checks.check(game(), { captcha: { pow: { client_response: encode(payload) } } });
    expect(decision?.reasons).toEqual(['other-namespace']);
  });

  test('for a challenge with the signature of another key', async () => {
    const place = game();
    const stranger = createProofsOfWork({ clock, key: { kty: 'oct', k: 'c29tZWJvZHkgZWxzZQ' } });
    const payload = await solve(await stranger.challenge(place.namespace_id, 1));
    const { decision } = await checks.check(place, { captcha: { pow: { client_response: encode(payload) } } });
    expect(decision?.reasons).toEqual(['invalid-signature']);
  });

  test('after its challenge has expired', async () => {
    const place = game();
    const payload = await solve(await checks.proofs.challenge(place.namespace_id, DIFFICULTY));
    clock.advance(CHALLENGE_TTL_MS);
    const { decision } = await checks.check(place, { captcha: { pow: { client_response: encode(payload) } } });
    expect(decision?.reasons).toEqual(['expired']);
  });
});

test('proof of work: a solution with any part replaced is refused without a failure', async () => {
  const namespace_id = crypto.randomUUID();
  const whole = await solve(await checks.proofs.challenge(namespace_id, 1));
  const places = ['challenge', 'solution', 'challenge.parameters', 'challenge.signature', 'solution.derivedKey'];
  const names = Object.keys(whole.challenge.parameters).map((name) => `challenge.parameters.${name}`);
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...places, ...names), fc.jsonValue(), async (place, value) => {
      const payload: Record<string, unknown> = structuredClone({ ...whole });
      const path = place.split('.');
      const last = path.pop() ?? '';
      const holder = path.reduce((branch, name) => branch[name] as Record<string, unknown>, payload);
      if (Bun.deepEquals(holder[last], value)) return;
      holder[last] = value;
      expect(await checks.proofs.check(namespace_id, encode(payload))).toContainKey('problem');
    }),
    { numRuns: 300 },
  );
  expect(await checks.proofs.check(namespace_id, encode(whole))).toContainKey('challenge_id');
});

describe('a solution is accepted', () => {
  test('once, in any spelling', async () => {
    const place = game();
    const payload = await solve(await checks.proofs.challenge(place.namespace_id, DIFFICULTY));
    const spellings = [
      encode(payload),
      encode(payload).replaceAll('=', ''),
      encode({ solution: { ...payload.solution, time: 99 }, challenge: payload.challenge, more: true }),
    ];
    const seen = [];
    for (const client_response of spellings)
      seen.push(await checks.check(place, { captcha: { pow: { client_response } } }));
    expect(seen.map(outcomeOfCheck)).toEqual(['solved', FAILED, FAILED]);
    expect(seen[2]?.decision?.reasons).toEqual(['used-before']);
    expect(outcomeOfCheck(await checks.check(place))).toBe('solved_before');
  });

  test('once of 200 concurrent uses on two processes', async () => {
    const place = game();
    const client_response = encode(await solve(await checks.proofs.challenge(place.namespace_id, DIFFICULTY)));
    const uses = Array.from({ length: 200 }, (_, index) =>
      (index % 2 === 0 ? checks : second).check(place, { captcha: { pow: { client_response } } }),
    );
    const outcomes = (await Promise.all(uses)).map(outcomeOfCheck);
    expect(outcomes.filter((outcome) => outcome === 'solved').length).toBe(1);
    expect(outcomes.filter((outcome) => outcome === FAILED).length).toBe(199);
  });

  test('on another process than the one that issued its challenge', async () => {
    const place = game();
    const payload = await solve(await second.proofs.challenge(place.namespace_id, DIFFICULTY));
    expect(outcomeOfCheck(await checks.check(place, { captcha: { pow: { client_response: encode(payload) } } }))).toBe(
      'solved',
    );
  });
});

test('proof of work: a challenge of difficulty d needs as many keys on average, and at most twice as many', async () => {
  const counters = [];
  for (let made = 0; made < 120; made += 1) {
    const { solution } = await solve(await checks.proofs.challenge(crypto.randomUUID(), DIFFICULTY));
    counters.push(solution.counter);
  }
  expect(new Set(counters)).toEqual(new Set([0, 1, 2, 3, 4, 5]));
});
