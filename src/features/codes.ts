/** Letters and digits that are not taken for each other; 32 of them, so that each is five bits. */
const LETTERS = 'ABCDEFGHJKLMNPQRSTUVWXYZ23456789';

/** A code to be read out, at random. */
export function makeCode(length: number): string {
  const bytes = crypto.getRandomValues(new Uint8Array(length));
  return [...bytes].map((byte) => LETTERS.charAt(byte % LETTERS.length)).join('');
}

/** A code as somebody wrote it down: in small letters, with blanks or dashes. */
export function readCode(text: string): string {
  return text.toUpperCase().replace(/[\s-]/g, '');
}
