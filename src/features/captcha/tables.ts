import { index, integer, pgTable, primaryKey, text, uuid } from 'drizzle-orm/pg-core';
import { moment } from '../../platform/database/columns.ts';

/** Clients that solved a captcha, with their requests since. */
export const captchaWindows = pgTable(
  'captcha_windows',
  {
    namespace_id: uuid().notNull(),
    /** The address of the client, or its network for IPv6. */
    client: text('connection').notNull(),
    verify_ts: moment().notNull(),
    /** Requests without a captcha since then. */
    request_count: integer().notNull(),
    /** When the window ends and can be deleted. */
    expire_ts: moment().notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.namespace_id, table.client] }),
    index('captcha_windows_by_end').on(table.expire_ts),
  ],
);

/** Captchas that were used: each is valid once. */
export const usedCaptchas = pgTable(
  'used_captchas',
  {
    /** A digest that does not reveal the captcha. */
    captcha_id: text().primaryKey(),
    /** When the captcha is no longer valid and can be deleted. */
    expire_ts: moment().notNull(),
  },
  (table) => [index('used_captchas_by_end').on(table.expire_ts)],
);
