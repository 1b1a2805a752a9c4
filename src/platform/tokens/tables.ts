import { jsonb, pgTable, text, uuid } from 'drizzle-orm/pg-core';
import type { JWK } from 'jose';
import { moment } from '../database/columns.ts';

/** Purposes of keys. The key for `token` is a private key (Ed25519), the others are secrets (HMAC). */
const PURPOSES = ['token', 'upload', 'captcha', 'refresh', 'pods'] as const;
export type KeyPurpose = (typeof PURPOSES)[number];

/** The keys of this database, for tokens, signed addresses, captchas, refresh tokens and tokens of pods. */
export const signingKeys = pgTable('signing_keys', {
  key_id: uuid().primaryKey(),
  purpose: text({ enum: PURPOSES }).notNull().unique('signing_keys_one_of_each'),
  key: jsonb().$type<JWK>().notNull(),
  create_ts: moment().notNull(),
});
