import { createChallenge, randomInt, verifySolution } from 'altcha-lib';
import { deriveKey } from 'altcha-lib/algorithms/pbkdf2';
import type { JWK } from 'jose';
import { after, type Clock } from '../../platform/clock.ts';
import { assert } from '../../platform/errors.ts';
import { parseJson } from '../../platform/http/json.ts';
import { compileShape } from '../../platform/http/shapes.ts';
import { type Challenge, SolvedChallenge } from './wire.ts';

const ALGORITHM = 'PBKDF2/SHA-256';
/** Rounds of the key derivation: one key takes 1.6 ms on a core of 2024. */
const COST = 5_000;
/** Time to solve a challenge; an old phone needs many times as long as a server. */
const CHALLENGE_TTL_MS = 300_000;

/** The problem of a solution, or the challenge it solves. */
type CheckedWork = { problem: string } | { challenge_id: string; expire_ts: Date };

export type ProofsOfWork = ReturnType<typeof createProofsOfWork>;

/**
 * Creates challenges that cost a client processor time (ALTCHA's protocol, version 2). They are signed, so unsolved
 * ones need no storage. `key`: a secret stored in the database, as JWK.
 */
export function createProofsOfWork({ clock, key: { k } }: { clock: Clock; key: JWK }) {
  assert(k !== undefined, 'the key of captchas is a secret');
  const solved = compileShape(SolvedChallenge);
  // One secret serves two purposes, separated by prefixes.
  const secrets = { hmacSignatureSecret: `challenge.${k}`, hmacKeySignatureSecret: `solution.${k}` };

  return {
    /** Returns a challenge that takes `difficulty` keys on average and at most twice as many. */
    async challenge(namespace_id: string, difficulty: number): Promise<Challenge> {
      const made = await createChallenge({
        ...secrets,
        algorithm: ALGORITHM,
        cost: COST,
        counter: randomInt(2 * difficulty - 1, 0),
        data: { challenge_id: crypto.randomUUID(), namespace_id },
        expiresAt: after(clock.now(), CHALLENGE_TTL_MS),
        deriveKey,
      });
      return made as Challenge;
    },
    /** Checks a solution: JSON in base64. The caller checks whether it was used before. */
    async check(namespace_id: string, client_response: string): Promise<CheckedWork> {
      const payload = decode(client_response);
      if (!solved.accepts(payload)) return { problem: 'unreadable' };
      const { challenge, solution } = payload;
      const { data, expiresAt } = challenge.parameters;
      const result = await verifySolution({ ...secrets, challenge, solution, deriveKey });
      if (result.invalidSignature) return { problem: 'invalid-signature' };
      if (result.expired || expiresAt * 1_000 <= clock.now().getTime()) return { problem: 'expired' };
      // Another namespace may have a lower difficulty.
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
