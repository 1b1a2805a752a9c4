import type { JWK } from 'jose';
import type { Clock } from '../clock.ts';
import { ServiceError } from '../errors.ts';
import { createSignedAddresses } from './signed-addresses.ts';

const LIFETIME_MS = 3_600_000;

/** Addresses that allow one GET for an hour, to whoever has them: what was asked for with a token, to be opened without. */
export interface SignedLinks {
  /** `path` with the parameters, an end and a signature. */
  sign(path: string, parameters: Record<string, string>): string;
  /** The parameters of such an address. Throws LINK_INVALID when a character of it was changed, or late. */
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
