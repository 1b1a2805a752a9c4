import { jsonb, pgTable, text, timestamp, uuid } from 'drizzle-orm/pg-core';
import type { JWK } from 'jose';

/** The keys that this database's tokens and upload addresses are signed with; made at the first start. */
export const signingKeys = pgTable('signing_keys', {
  key_id: uuid().primaryKey(),
  /** `token` (Ed25519, private) or `upload` (HMAC). */
  purpose: text({ enum: ['token', 'upload'] })
    .notNull()
    .unique('signing_keys_one_of_each'),
  key: jsonb().$type<JWK>().notNull(),
  create_ts: timestamp({ withTimezone: true, precision: 3, mode: 'date' }).notNull(),
});
