import { sql } from 'drizzle-orm';
import { boolean, index, integer, pgTable, text, uuid } from 'drizzle-orm/pg-core';
import { moment } from '../../platform/database/columns.ts';

/** Identities of people: administrators, and guests. */
export const identities = pgTable(
  'identities',
  {
    identity_id: uuid().primaryKey(),
    display_name: text().notNull(),
    /** Four digits that distinguish people with one display name. */
    account_number: integer().notNull(),
    bio: text().notNull().default(''),
    is_registered: boolean().notNull(),
    is_admin: boolean().notNull(),
    create_ts: moment().notNull(),
    /** The upload with the identity's picture. */
    avatar_upload_id: uuid(),
    /** The namespace of a guest. Null for identities of no namespace. */
    namespace_id: uuid(),
    /**
     * A guest is kept until this moment, 30 days after its last token expires. The default covers guests of earlier
     * versions and of processes that still run one.
     */
    keep_until_ts: moment().notNull().default(sql`now() + interval '210 days'`),
    /** When the identity is due for deletion, if it asked for it. */
    delete_ts: moment(),
    /**
     * Whether the identity was deleted. The row, without name, bio and picture, is removed like that of a guest, once no
     * group lists it.
     */
    is_deleted: boolean().notNull().default(false),
  },
  (table) => [
    index('identities_to_delete').on(table.delete_ts).where(sql`delete_ts is not null and not is_deleted`),
    index('identities_to_remove').on(table.keep_until_ts).where(sql`not is_registered and not is_admin`),
  ],
);

/** Refresh tokens of browsers, as hashes. */
export const refreshTokens = pgTable(
  'refresh_tokens',
  {
    token_hash: text().primaryKey(),
    identity_id: uuid()
      .notNull()
      .references(() => identities.identity_id),
    expire_ts: moment().notNull(),
    /** When the token was replaced by its use, or revoked by a logout or the deletion of its identity. */
    revoke_ts: moment(),
    /** Whether the token was revoked by its use. */
    is_replaced: boolean().notNull().default(false),
  },
  (table) => [
    index('refresh_tokens_by_identity').on(table.identity_id),
    index('refresh_tokens_by_age').on(table.expire_ts),
  ],
);

export type IdentityRow = typeof identities.$inferSelect;
export type RefreshTokenRow = typeof refreshTokens.$inferSelect;
