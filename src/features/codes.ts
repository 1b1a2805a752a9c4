/** Letters and digits that are not easily confused; 32 of them, so each is five bits. */
export const READABLE_CHARACTERS = 'ABCDEFGHJKLMNPQRSTUVWXYZ23456789';

/** Returns a random code that is easy to read out. */
export function makeCode(length: number): string {
  const bytes = crypto.getRandomValues(new Uint8Array(length));
  return [...bytes].map((byte) => READABLE_CHARACTERS.charAt(byte % READABLE_CHARACTERS.length)).join('');
}

/** Normalizes a typed code: case, blanks and dashes do not matter. */
export function normalizeCode(text: string): string {
  return text.toUpperCase().replace(/[\s-]/g, '');
}
