import { type Challenge, solveChallenge } from 'altcha-lib';
import { deriveKey } from 'altcha-lib/algorithms/web/pbkdf2';
import { NEEDS_TLS, type SolvedWork } from './protocol.ts';

export async function solveWork(challenge: Challenge): Promise<SolvedWork> {
  if (!isSecureContext) throw new Error(`${NEEDS_TLS}.`);
  const solution = await solveChallenge({ challenge, deriveKey });
  return { pow: { client_response: btoa(JSON.stringify({ challenge, solution })) } };
}
