import { boolean, index, pgTable, text, uuid } from 'drizzle-orm/pg-core';
import { moment } from '../../platform/database/columns.ts';
import { games } from '../games/tables.ts';
import { identities } from '../identities/tables.ts';

/** The hashes of secrets that log a browser in to the hub: of links, each of which works once, and of sessions. */
export const hubSecrets = pgTable(
  'hub_secrets',
  {
    secret_hash: text().primaryKey(),
    is_link: boolean().notNull(),
    /** The bearer: an identity, or the tools of a game. */
    identity_id: uuid().references(() => identities.identity_id, { onDelete: 'cascade' }),
    game_id: uuid().references(() => games.game_id, { onDelete: 'cascade' }),
    /** When the cloud token was issued that created the link. Its revocation ends the session. */
    issued_at: moment(),
    expire_ts: moment().notNull(),
    /** When the token expires that created the link. No session lasts longer. */
    session_until_ts: moment().notNull(),
  },
  (table) => [index('hub_secrets_by_age').on(table.expire_ts)],
);

export type HubSecretRow = typeof hubSecrets.$inferSelect;
