/** Returns the SHA-256 digest of a content, in hexadecimal digits. */
export const sha256 = (content: Uint8Array | string) => new Bun.CryptoHasher('sha256').update(content).digest('hex');
