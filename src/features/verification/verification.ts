import type { Clock } from '../../platform/clock.ts';
import { ServiceError } from '../../platform/errors.ts';
import type { IpDatabase } from '../../platform/ip-database.ts';
import { type FailureKind, type Outbound, OutboundFailure } from '../../platform/outbound/outbound.ts';
import { type OutboundExchange, outline, startTimer, withoutQuery, withoutValues } from '../outbound-exchange.ts';
import type { VerificationConfig } from '../versions/versions.ts';
import { sign } from './signature.ts';
import { type SeatsToVerify, toPayload, type VerificationPayload } from './wire.ts';

export type { PayloadLobby, SeatsToVerify } from './wire.ts';

interface VerificationSettings {
  /** Time limit of a request, including its answer, if the player's request has as much left. */
  verification_timeout_ms: number;
}

export interface VerificationDependencies extends VerificationSettings {
  clock: Clock;
  outbound: Outbound;
  ip_database: IpDatabase;
}

/** A verification to request, and the caller it is for. */
export interface VerificationRequest {
  /** Identifies the verification. */
  id: string;
  /** The game that sends it. */
  game_id: string;
  config: VerificationConfig;
  asked: Omit<SeatsToVerify, 'client'> & { client: Omit<SeatsToVerify['client'], 'coordinates'> };
  signal: AbortSignal;
  /** The time that the player's request has left for it. */
  time_left_ms: number;
}

/** The result: the status of the answer, or why there was none. */
export type Verdict = ({ is_accepted: boolean; status: number } | { is_accepted: false; failure: FailureKind }) & {
  exchange: OutboundExchange;
};

/** Headers whose values developers may see. */
const SHOWN_HEADERS = ['content-type', 'webhook-id', 'webhook-timestamp'];

export type Verification = ReturnType<typeof createVerification>;

/**
 * Creates the client of games' own verification servers, which decide whether a player may have a seat (specification:
 * external verification).
 */
export function createVerification(dependencies: VerificationDependencies) {
  const { clock, outbound, ip_database, verification_timeout_ms } = dependencies;

  async function ask({ id, game_id, config, asked, signal, time_left_ms }: VerificationRequest): Promise<Verdict> {
    const { client } = asked;
    const coordinates = ip_database.coordinatesOf(client.address);
    const payload = toPayload({ ...asked, client: { ...client, coordinates } });
    const body = JSON.stringify(payload);
    const { url, secret } = config;
    const signature = secret === undefined ? {} : sign({ id, now: clock.now(), body }, secret);
    const headers = { 'content-type': 'application/json', ...inLowerCase(config.headers ?? {}), ...signature };
    const measure = startTimer();
    const toExchange = (): OutboundExchange => ({
      url: withoutQuery(url),
      headers: withoutValues(headers, SHOWN_HEADERS),
      body: withoutSecrets(payload),
      duration_ms: measure(),
    });
    const out_of_time = new AbortController();
    const timer = setTimeout(() => out_of_time.abort(), time_left_ms);
    try {
      const { status } = await outbound.post(url, {
        headers,
        body,
        timeout_ms: verification_timeout_ms,
        answer_bytes_max: 0,
        signal: AbortSignal.any([signal, out_of_time.signal]),
        // A game with slow servers must not delay the others, however many namespaces it has.
        account: `game ${game_id}`,
      });
      return { is_accepted: status >= 200 && status <= 299, status, exchange: { ...toExchange(), status } };
    } catch (error) {
      if (!(error instanceof OutboundFailure)) throw error;
      // Too late for the player, but the server may be well.
      const is_late = error.kind === 'cancelled' && out_of_time.signal.aborted && !signal.aborted;
      return { is_accepted: false, failure: is_late ? 'timeout' : error.kind, exchange: toExchange() };
    } finally {
      clearTimeout(timer);
    }
  }

  return { ask };
}

/**
 * Throws MATCHMAKER_VERIFICATION_FAILED if the server refused, MATCHMAKER_VERIFICATION_REQUEST_FAILED if it did not
 * answer.
 */
export function refuseUnverified(verdict: Verdict): void {
  if (verdict.is_accepted) return;
  if ('status' in verdict) throw new ServiceError('MATCHMAKER_VERIFICATION_FAILED', {});
  throw new ServiceError('MATCHMAKER_VERIFICATION_REQUEST_FAILED', {});
}

/**
 * Returns a payload in which outlines replace the data of the client and the JSON of the game, because they may have
 * passwords and tokens, and without the addresses of clients.
 */
function withoutSecrets({ verification_data, game, clients, ...others }: VerificationPayload) {
  return {
    verification_data: outline(verification_data),
    game: { ...game, state: outline(game.state), config: outline(game.config) },
    clients: { '(address)': outline(Object.values(clients)[0] ?? null) },
    ...others,
  };
}

function inLowerCase(headers: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
}
