import { ANSWER_WITHIN_MS } from '../shared/request-time.ts';
import { Failure } from '../terminal/failure.ts';
import type { ApiCaller } from './api-caller.ts';
import { paths } from './paths.ts';
import type { Scope, Session } from './session.ts';

/** The body of a find. */
export interface WantedSeat {
  game_modes: string[];
}

/** Creates a token with which players of a namespace send requests. */
export async function createPublicToken({ api }: Pick<Session, 'api'>, scope: Scope): Promise<string> {
  return (await api.call<{ token: string }>('POST', `${paths.namespace(scope)}/tokens/public`)).token;
}

interface FindOptions {
  body: WantedSeat;
  signal?: AbortSignal;
}

/** Finds a seat as a player. Solves a proof of work if the version requires one. Throws Failure. */
export async function findSeat<Seat>(player: ApiCaller, { body, ...more }: FindOptions): Promise<Seat> {
  const find = (captcha: object = {}) =>
    player.call<Seat>('POST', '/matchmaker/lobbies/find', {
      body: { ...body, ...captcha },
      timeout_ms: ANSWER_WITHIN_MS,
      ...more,
    });
  try {
    return await find();
  } catch (error) {
    const challenge_url = readChallengeUrl(error);
    if (challenge_url === undefined) throw error;
    const client_response = await solve(player, challenge_url, more.signal);
    return await find({ captcha: { pow: { client_response } } });
  }
}

/** Returns the address of the proof of work that a refused find needs; undefined if it was refused for another reason. */
function readChallengeUrl(error: unknown): string | undefined {
  if (!(error instanceof Failure) || error.refusal?.code !== 'CAPTCHA_CAPTCHA_REQUIRED') return undefined;
  const metadata = error.refusal.metadata as { pow?: { challenge_url: string } } | undefined;
  return metadata?.pow?.challenge_url;
}

async function solve(player: ApiCaller, challenge_url: string, signal: AbortSignal | undefined): Promise<string> {
  const [{ solveChallenge }, { deriveKey }] = await Promise.all([
    import('altcha-lib'),
    import('altcha-lib/algorithms/pbkdf2'),
  ]);
  type Challenge = Parameters<typeof solveChallenge>[0]['challenge'];
  // Players may reach the service at an address other than this caller's.
  const challenge = await player.get<Challenge>(new URL(challenge_url).pathname, { signal });
  const solution = await solveChallenge({ challenge, deriveKey });
  return Buffer.from(JSON.stringify({ challenge, solution })).toString('base64');
}
