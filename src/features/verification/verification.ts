import type { Clock } from '../../platform/clock.ts';
import { ServiceError } from '../../platform/errors.ts';
import type { IpDatabase } from '../../platform/ip-database.ts';
import { type FailureKind, type Outbound, OutboundFailure } from '../../platform/outbound/outbound.ts';
import type { VerificationConfig } from '../versions/versions.ts';
import { sign } from './signature.ts';
import { type AskedSeats, toPayload } from './wire.ts';

export type { AskedSeats, SeenLobby } from './wire.ts';

export interface VerificationDependencies {
  clock: Clock;
  outbound: Outbound;
  ip_database: IpDatabase;
  /** For a request and its answer, everything included. */
  verification_timeout_ms: number;
}

/** What a game's own server is asked, and for whom. */
export interface VerificationRequest {
  /** The request of the player, which is known by it. */
  ray_id: string;
  config: VerificationConfig;
  asked: Omit<AskedSeats, 'client'> & { client: Omit<AskedSeats['client'], 'coordinates'> };
  signal: AbortSignal;
}

/** What came of it: the status of an answer, or why there was none. */
export type Verdict = { is_accepted: boolean; status: number } | { is_accepted: false; failure: FailureKind };

export type Verification = ReturnType<typeof createVerification>;

/** Asks a game's own server whether somebody may have a seat (specification: external verification). */
export function createVerification(dependencies: VerificationDependencies) {
  const { clock, outbound, ip_database, verification_timeout_ms } = dependencies;

  async function ask({ ray_id, config, asked, signal }: VerificationRequest): Promise<Verdict> {
    const { client } = asked;
    const coordinates = ip_database.coordinatesOf(client.address);
    const body = JSON.stringify(toPayload({ ...asked, client: { ...client, coordinates } }));
    const { url, headers, secret } = config;
    const signature = secret === undefined ? {} : sign({ id: ray_id, now: clock.now(), body }, secret);
    try {
      const { status } = await outbound.post(url, {
        headers: { 'content-type': 'application/json', ...inLowerCase(headers ?? {}), ...signature },
        body,
        timeout_ms: verification_timeout_ms,
        answer_bytes_max: 0,
        signal,
        // A namespace that asks a slow server keeps none of the others waiting.
        account: `namespace ${asked.namespace_id}`,
      });
      return { is_accepted: status >= 200 && status <= 299, status };
    } catch (error) {
      if (error instanceof OutboundFailure) return { is_accepted: false, failure: error.kind };
      throw error;
    }
  }

  return { ask };
}

/** Throws MATCHMAKER_VERIFICATION_FAILED: the answer was no yes; MATCHMAKER_VERIFICATION_REQUEST_FAILED: there was none. */
export function refuseUnverified(verdict: Verdict): void {
  if (verdict.is_accepted) return;
  if ('status' in verdict) throw new ServiceError('MATCHMAKER_VERIFICATION_FAILED', {});
  throw new ServiceError('MATCHMAKER_VERIFICATION_REQUEST_FAILED', {});
}

function inLowerCase(headers: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
}
