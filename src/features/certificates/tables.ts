import { index, integer, pgTable, primaryKey, text } from 'drizzle-orm/pg-core';
import { moment } from '../../platform/database/columns.ts';

/** The account of this database with an ACME authority. */
export const acmeAccounts = pgTable('acme_accounts', {
  /** The address of the authority's directory. */
  directory: text().primaryKey(),
  /** PEM. */
  key: text().notNull(),
  /** The address of the account. Only earlier releases read and write it. */
  url: text(),
});

/** The answers that an authority expects to find at hosts while it checks them. */
export const acmeChallenges = pgTable(
  'acme_challenges',
  {
    token: text().primaryKey(),
    host: text().notNull(),
    answer: text().notNull(),
    expire_ts: moment().notNull(),
  },
  (table) => [index('acme_challenges_by_expiry').on(table.expire_ts)],
);

/** The certificate that an authority issues for a host, or the attempts to get one. */
export const certificates = pgTable(
  'certificates',
  {
    host: text().notNull(),
    directory: text().notNull(),
    /** PEM. Both null until the first is issued. */
    certificate: text(),
    key: text(),
    /** When to order the next one. */
    due_ts: moment().notNull(),
    /** Until when the process that claimed the host may order its certificate. Also identifies that attempt. */
    claimed_until_ts: moment(),
    /** Failed attempts in a row. */
    failures: integer().notNull().default(0),
  },
  (table) => [primaryKey({ columns: [table.directory, table.host] })],
);
