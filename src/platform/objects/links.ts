import type { JWK } from 'jose';
import type { Clock } from '../clock.ts';
import { ServiceError } from '../errors.ts';
import { createSignedAddresses } from './signed-addresses.ts';

const LIFETIME_MS = 3_600_000;

/** Addresses that allow GET for an hour without a token. To get one, a caller needs a token. */
export interface SignedLinks {
  /** Returns `path` with the parameters, an expiry and a signature. */
  sign(path: string, parameters: Record<string, string>): string;
  /** Returns the parameters of a signed address. Throws LINK_INVALID if it was changed or has expired. */
  verify(url: string): URLSearchParams;
}

export function createSignedLinks(key: JWK, clock: Clock, public_url: string): SignedLinks {
  const addresses = createSignedAddresses({ method: 'GET', key, clock, public_url });
  return {
    sign: (path, parameters) => addresses.sign(path, parameters, LIFETIME_MS),
    verify(url) {
      const address = addresses.verify(url);
      if (!address) throw new ServiceError('LINK_INVALID', {});
      return address.parameters;
    },
  };
}
