import { createHmac, timingSafeEqual } from 'node:crypto';
import type { JWK } from 'jose';
import type { Clock } from '../clock.ts';
import { ServiceError } from '../errors.ts';

const LIFETIME_MS = 3_600_000;
const SIGNATURE = '&signature=';

/** Addresses that allow one GET for an hour, to whoever has them: what was asked for with a token, to be opened without. */
export interface SignedLinks {
  /** `path` with the parameters, an end and a signature. */
  sign(path: string, parameters: Record<string, string>): string;
  /** The parameters of such an address. Throws LINK_INVALID when a character of it was changed, or late. */
  verify(url: string): URLSearchParams;
}

/** The signature is an HMAC-SHA256 over the method and the address as it is written, as for uploads. */
export function createSignedLinks(key: JWK, clock: Clock, public_url: string): SignedLinks {
  const secret = Buffer.from(key.k ?? '', 'base64url');
  const signatureOf = (text: string) => createHmac('sha256', secret).update(`GET ${text}`).digest('base64url');
  return {
    sign(path, parameters) {
      const expires = String(clock.now().getTime() + LIFETIME_MS);
      const signed = `${path}?${new URLSearchParams({ ...parameters, expires })}`;
      return `${public_url}${signed}${SIGNATURE}${signatureOf(signed)}`;
    },
    verify(url) {
      const { pathname, search, searchParams } = new URL(url);
      const [signed = '', given = '', ...more] = `${pathname}${search}`.split(SIGNATURE);
      const [actual, expected] = [Buffer.from(given), Buffer.from(signatureOf(signed))];
      const is_signed = more.length === 0 && actual.length === expected.length && timingSafeEqual(actual, expected);
      if (!is_signed || clock.now().getTime() > Number(searchParams.get('expires'))) {
        throw new ServiceError('LINK_INVALID', {});
      }
      return searchParams;
    },
  };
}
