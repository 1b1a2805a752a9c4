import { timingSafeEqual } from 'node:crypto';

/** Returns whether a text is the expected one. The time that this takes says nothing about where they differ. */
export function isSameSecret(given: string, expected: string): boolean {
  const [one, other] = [Buffer.from(given), Buffer.from(expected)];
  return one.length === other.length && timingSafeEqual(one, other);
}
