import { type Challenge, solveChallenge } from 'altcha-lib';
import { deriveKey } from 'altcha-lib/algorithms/web/pbkdf2';

/** Solves a proof of work. Returns it as requests for seats carry it. */
export async function solveWork(challenge: Challenge): Promise<{ pow: { client_response: string } }> {
  const solution = await solveChallenge({ challenge, deriveKey });
  return { pow: { client_response: btoa(JSON.stringify({ challenge, solution })) } };
}
