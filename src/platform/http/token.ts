/** Returns whether a text is a token (RFC 9110, 5.6.2), as a header's name or a WebSocket's protocol must be. */
export function isToken(text: string): boolean {
  return /^[\w!#$%&'*+.^`|~-]+$/.test(text);
}
