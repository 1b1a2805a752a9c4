import { index, integer, pgTable, primaryKey, text, timestamp, uuid } from 'drizzle-orm/pg-core';

const moment = () => timestamp({ withTimezone: true, precision: 3, mode: 'date' });

/** Where somebody has solved a captcha: how often he may go on from there without another. */
export const captchaWindows = pgTable(
  'captcha_windows',
  {
    namespace_id: uuid().notNull(),
    /** The address, or the network of IPv6, that he came from. */
    connection: text().notNull(),
    verify_ts: moment().notNull(),
    /** Requests without a captcha since then. */
    request_count: integer().notNull(),
    /** When the window is over by itself and can be forgotten. */
    expire_ts: moment().notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.namespace_id, table.connection] }),
    index('captcha_windows_by_end').on(table.expire_ts),
  ],
);

/** Captchas that were handed in: each is good once. */
export const usedCaptchas = pgTable(
  'used_captchas',
  {
    /** A digest that says nothing of what was handed in. */
    captcha_id: text().primaryKey(),
    /** When it is too old to be good for anything, and can be forgotten. */
    expire_ts: moment().notNull(),
  },
  (table) => [index('used_captchas_by_end').on(table.expire_ts)],
);
