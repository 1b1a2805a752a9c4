import { sql } from 'drizzle-orm';
import { boolean, index, integer, pgTable, text, timestamp, uuid } from 'drizzle-orm/pg-core';

const moment = () => timestamp({ withTimezone: true, precision: 3, mode: 'date' });

/** People. A guest becomes registered when a login is linked to him. */
export const identities = pgTable(
  'identities',
  {
    identity_id: uuid().primaryKey(),
    display_name: text().notNull(),
    /** Four digits that tell apart people of one display name. */
    account_number: integer().notNull(),
    bio: text().notNull().default(''),
    is_registered: boolean().notNull(),
    is_admin: boolean().notNull(),
    create_ts: moment().notNull(),
    /** The upload that is his picture. */
    avatar_upload_id: uuid(),
    /** The namespace whose client made this guest; null for people of no namespace. */
    namespace_id: uuid(),
    /**
     * A guest is not removed before this moment: 30 days after the last token expires. The default covers guests of
     * earlier versions and of processes that still run one.
     */
    keep_until_ts: moment().notNull().default(sql`now() + interval '210 days'`),
    /** When he is to be forgotten, if he asked for it. */
    delete_ts: moment(),
    /** Forgotten: nothing but the id is left, for what refers to it. */
    is_deleted: boolean().notNull().default(false),
  },
  (table) => [
    index('identities_to_delete').on(table.delete_ts).where(sql`delete_ts is not null and not is_deleted`),
    index('identities_to_remove').on(table.keep_until_ts).where(sql`not is_registered and not is_admin`),
  ],
);

/** With which a browser comes by new tokens. Of the token itself only a hash is kept. */
export const refreshTokens = pgTable(
  'refresh_tokens',
  {
    token_hash: text().primaryKey(),
    identity_id: uuid()
      .notNull()
      .references(() => identities.identity_id),
    expire_ts: moment().notNull(),
    /** Used, or the identity is gone. */
    revoke_ts: moment(),
    /** Used: another one took its place when it was revoked. */
    is_replaced: boolean().notNull().default(false),
  },
  (table) => [
    index('refresh_tokens_by_identity').on(table.identity_id),
    index('refresh_tokens_by_age').on(table.expire_ts),
  ],
);

export type IdentityRow = typeof identities.$inferSelect;
export type RefreshTokenRow = typeof refreshTokens.$inferSelect;
