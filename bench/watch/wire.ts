const ZERO = 48;
const NINE = 57;

/** Returns the last number before an offset: bodies end with the index of their content. */
export function numberAtEnd(bytes: Uint8Array, end: number): number {
  let at = end - 1;
  while (!isDigit(bytes[at])) at -= 1;
  let number = 0;
  for (let unit = 1; isDigit(bytes[at]); unit *= 10, at -= 1) number += unit * ((bytes[at] ?? ZERO) - ZERO);
  return number;
}

function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= ZERO && byte <= NINE;
}

/** Kinds of frame (RFC 6455, 5.2). */
export const TEXT = 1;
export const BINARY = 2;
export const PING = 9;
export const PONG = 10;

/** Returns a frame as clients send it: complete, with a mask of zeros. */
export function encodeFrame(payload: string | Uint8Array, kind: number): Buffer {
  const bytes = Buffer.from(payload);
  const length = bytes.length < 126 ? [bytes.length | 0x80] : [126 | 0x80, bytes.length >> 8, bytes.length & 255];
  return Buffer.concat([Buffer.from([kind | 0x80, ...length, 0, 0, 0, 0]), bytes]);
}
