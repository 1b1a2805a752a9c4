import { READABLE_CHARACTERS } from '../codes.ts';

const HALF_LENGTH = 4;

/**
 * Returns the code of a link. The tool and the page both show it, and a person compares the two before completing the link.
 * The token is signed, so another link with the same code can only be searched by requests to the service.
 */
export function codeOf(device_link_token: string): string {
  const digest = new Bun.CryptoHasher('sha256').update(device_link_token).digest();
  const characters = [...digest].map((byte) => READABLE_CHARACTERS[byte % READABLE_CHARACTERS.length]);
  return `${characters.slice(0, HALF_LENGTH).join('')}-${characters.slice(HALF_LENGTH, 2 * HALF_LENGTH).join('')}`;
}

/** Returns when a link was created, from its id: the first 48 bits of a UUID of version 7 (RFC 9562). */
export function creationTimeOf(device_link_id: string): Date {
  return new Date(Number.parseInt(device_link_id.replaceAll('-', '').slice(0, 12), 16));
}
