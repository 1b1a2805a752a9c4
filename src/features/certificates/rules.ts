import { MINUTE_MS } from '../../platform/units.ts';
import type { Certificate } from './certificate.ts';

const RETRY_FIRST_MS = 5 * MINUTE_MS;
const RETRY_MAX_MS = 12 * 60 * MINUTE_MS;
/** The part of a certificate's lifetime after which it is renewed, as Let's Encrypt recommends. */
const RENEW_AFTER = 2 / 3;

/** Returns when a certificate is to be renewed. */
export function renewalOf({ valid_from, expires_at }: Pick<Certificate, 'valid_from' | 'expires_at'>): Date {
  const lifetime_ms = expires_at.getTime() - valid_from.getTime();
  return new Date(valid_from.getTime() + lifetime_ms * RENEW_AFTER);
}

/** Returns how long to wait after a number of failures in a row. An authority refuses a host that fails too often. */
export function retryAfter(failures: number): number {
  return Math.min(RETRY_MAX_MS, RETRY_FIRST_MS * 2 ** (failures - 1));
}

/**
 * Selects the certificates to serve: one for each name, the first that is valid now. `certificates` is ordered by
 * preference. A name whose certificates have all expired keeps the first of them, because clients explain an expired one
 * better than a connection that fails; but not if a valid wildcard certificate covers the name.
 */
export function selectCertificates(certificates: readonly Certificate[], now: Date): Map<string, Certificate> {
  const isCurrent = ({ valid_from, expires_at }: Certificate) => valid_from <= now && now < expires_at;
  const selected = new Map<string, Certificate>();
  for (const certificate of certificates.toSorted((one, other) => Number(isCurrent(other)) - Number(isCurrent(one)))) {
    for (const name of certificate.names) {
      const beside = selected.get(name.replace(/^[^.]+/, '*'));
      const is_covered = !isCurrent(certificate) && beside !== undefined && isCurrent(beside);
      if (!selected.has(name) && !is_covered) selected.set(name, certificate);
    }
  }
  return selected;
}
