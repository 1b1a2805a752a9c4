import { createChallenge, randomInt, verifySolution } from 'altcha-lib';
import { deriveKey } from 'altcha-lib/algorithms/pbkdf2';
import type { JWK } from 'jose';
import { after, type Clock } from '../../platform/clock.ts';
import { assert } from '../../platform/errors.ts';
import { parseJson } from '../../platform/http/body.ts';
import { compileShape } from '../../platform/http/shapes.ts';
import { type Challenge, SolvedChallenge } from './wire.ts';

const ALGORITHM = 'PBKDF2/SHA-256';
/** Rounds for each key: one takes 1.6 ms of a core of 2024. */
const COST = 5_000;
/** Time to solve it in; phones that are old take many times as long as we. */
const CHALLENGE_TTL_MS = 300_000;

/** What is wrong with a solution, or what it is of. */
type Checked = { problem: string } | { challenge_id: string; expire_ts: Date };

/**
 * Challenges that cost a client processor time and nobody else anything (ALTCHA's protocol, version 2). They are signed, not
 * kept: nothing has to be remembered of those that nobody solves. `key`: a secret of the database's, as JWK.
 */
export function createProofsOfWork({ clock, key: { k } }: { clock: Clock; key: JWK }) {
  assert(k !== undefined, 'the key of captchas is a secret');
  const solved = compileShape(SolvedChallenge);
  // Two purposes of one secret, told apart by their names.
  const secrets = { hmacSignatureSecret: `challenge.${k}`, hmacKeySignatureSecret: `solution.${k}` };

  return {
    /** A challenge that takes `difficulty` keys on average, and at most twice as many. */
    async challenge(namespace_id: string, difficulty: number): Promise<Challenge> {
      const made = await createChallenge({
        ...secrets,
        algorithm: ALGORITHM,
        cost: COST,
        counter: randomInt(2 * difficulty),
        data: { challenge_id: crypto.randomUUID(), namespace_id },
        expiresAt: after(clock.now(), CHALLENGE_TTL_MS),
        deriveKey,
      });
      return made as Challenge;
    },
    /** Looks at a solution: JSON in base64. Whether it was handed in before is for the caller to see. */
    async check(namespace_id: string, client_response: string): Promise<Checked> {
      const payload = decode(client_response);
      if (!solved.accepts(payload)) return { problem: 'unreadable' };
      const { challenge, solution } = payload;
      const { data, expiresAt } = challenge.parameters;
      const result = await verifySolution({ ...secrets, challenge, solution, deriveKey });
      if (result.invalidSignature) return { problem: 'invalid-signature' };
      if (result.expired || expiresAt * 1_000 <= clock.now().getTime()) return { problem: 'expired' };
      // Others are easier, where somebody wants them to be.
      if (data.namespace_id !== namespace_id) return { problem: 'other-namespace' };
      if (!result.verified) return { problem: 'wrong' };
      return { challenge_id: data.challenge_id, expire_ts: new Date(expiresAt * 1_000) };
    },
  };
}

function decode(client_response: string): unknown {
  try {
    return parseJson(Buffer.from(client_response, 'base64').toString());
  } catch {
    return undefined;
  }
}
