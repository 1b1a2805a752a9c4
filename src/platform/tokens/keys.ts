import { eq } from 'drizzle-orm';
import { exportJWK, generateKeyPair, generateSecret, type JWK } from 'jose';
import type { Clock } from '../clock.ts';
import type { Queries } from '../database/database.ts';
import { assert } from '../errors.ts';
import { type KeyPurpose, signingKeys } from './tables.ts';

/** Returns the key of a purpose. Creates it if there is none; if several processes do so, all get the first one's. */
export async function loadKey(queries: Queries, clock: Clock, purpose: KeyPurpose): Promise<JWK> {
  const read = () => queries.select().from(signingKeys).where(eq(signingKeys.purpose, purpose));
  const [existing] = await read();
  if (existing) return existing.key;
  const key = await exportJWK(await generate(purpose));
  await queries
    .insert(signingKeys)
    .values({ key_id: crypto.randomUUID(), purpose, key, create_ts: clock.now() })
    .onConflictDoNothing();
  const [winner] = await read();
  assert(winner, 'an inserted key can be read');
  return winner.key;
}

async function generate(purpose: KeyPurpose) {
  if (purpose !== 'token') return await generateSecret('HS256', { extractable: true });
  return (await generateKeyPair('EdDSA', { crv: 'Ed25519', extractable: true })).privateKey;
}
