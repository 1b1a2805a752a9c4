import { createHmac } from 'node:crypto';
import type { JWK } from 'jose';
import type { Clock } from '../clock.ts';
import { isSameSecret } from '../constant-time.ts';
import { assert } from '../errors.ts';

const SIGNATURE = '&signature=';
/** The minimum for HMAC-SHA256 (RFC 7518, 3.2). */
const SECRET_BYTES_MIN = 32;

interface SignedAddressesOptions {
  /** The only method that the addresses allow. */
  method: 'GET' | 'PUT';
  key: JWK;
  clock: Clock;
  public_url: string;
}

/** Addresses that are valid for a while without a token, because they are signed. */
export interface SignedAddresses {
  /** Returns `path` with the parameters, an expiry and a signature. */
  sign(path: string, parameters: Record<string, string>, lifetime_ms: number): string;
  /** Returns the path and parameters of a signed address; undefined if it was changed or has expired. */
  verify(url: string): { path: string; parameters: URLSearchParams } | undefined;
}

/**
 * Creates the signer of addresses. A signature is an HMAC-SHA256 over the method and the exact text of the address up to
 * the signature, so that no other spelling of an address is valid.
 */
export function createSignedAddresses({ method, key, clock, public_url }: SignedAddressesOptions): SignedAddresses {
  const secret = Buffer.from(key.k ?? '', 'base64url');
  assert(secret.length >= SECRET_BYTES_MIN, 'the key of signed addresses is a secret of at least 32 bytes');

  function signatureOf(path_and_query: string): string {
    return createHmac('sha256', secret).update(`${method} ${path_and_query}`).digest('base64url');
  }

  return {
    sign(path, parameters, lifetime_ms) {
      const expires = String(clock.now().getTime() + lifetime_ms);
      const signed = `${path}?${new URLSearchParams({ ...parameters, expires })}`;
      return `${public_url}${signed}${SIGNATURE}${signatureOf(signed)}`;
    },
    verify(url) {
      const { pathname, search, searchParams } = new URL(url);
      const written = `${pathname}${search}`;
      const [signed = '', given = '', ...more] = written.split(SIGNATURE);
      // `new URL()` drops some characters, such as a fragment or a tab, which were not in the signed address.
      const is_signed = url.endsWith(written) && more.length === 0 && isSameSecret(given, signatureOf(signed));
      if (!is_signed || clock.now().getTime() > Number(searchParams.get('expires'))) return undefined;
      return { path: pathname, parameters: searchParams };
    },
  };
}
