import { hkdfSync } from 'node:crypto';
import { exportJWK, generateKeyPair, type JWK } from 'jose';
import { createTokens, type Tokens } from '../../src/platform/tokens/tokens.ts';

/** Tokens with a key of their own, and a clock that stands still until a test sets it. */
export interface TokenMaker {
  tokens: Tokens;
  /** The private key; `x` is the public part. */
  key: JWK;
  now: { ms: number };
}

export async function makeTokenMaker(): Promise<TokenMaker> {
  const { privateKey } = await generateKeyPair('EdDSA', { crv: 'Ed25519', extractable: true });
  const key = await exportJWK(privateKey);
  const now = { ms: Date.parse('2026-01-31T12:00:00.000Z') };
  return { tokens: await createTokens(key, { now: () => new Date(now.ms) }), key, now };
}

/** The key that signs tokens of players: derived from the private key (RFC 5869). */
export function playerKeyOf({ d = '' }: JWK): Uint8Array {
  return new Uint8Array(hkdfSync('sha256', Buffer.from(d, 'base64url'), '', 'muster player tokens', 32));
}
