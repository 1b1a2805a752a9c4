import { bigint, boolean, index, integer, pgTable, primaryKey, text, timestamp, uuid } from 'drizzle-orm/pg-core';
import { games } from '../games/tables.ts';

const moment = () => timestamp({ withTimezone: true, precision: 3, mode: 'date' });

/** Files on their way to us. Their bytes lie in the object storage; here is what was announced and what has come. */
export const uploads = pgTable(
  'uploads',
  {
    upload_id: uuid().primaryKey(),
    game_id: uuid()
      .notNull()
      .references(() => games.game_id),
    /** What it will be, once it is complete. */
    kind: text({ enum: ['build'] }).notNull(),
    is_multipart: boolean().notNull(),
    /** Of all files together. */
    content_length: bigint({ mode: 'number' }).notNull(),
    create_ts: moment().notNull(),
    /** Until when one request has it to itself, to complete it. */
    completing_until: moment(),
    complete_ts: moment(),
  },
  (table) => [index('uploads_by_age').on(table.create_ts)],
);

export const uploadFiles = pgTable(
  'upload_files',
  {
    upload_id: uuid()
      .notNull()
      .references(() => uploads.upload_id, { onDelete: 'cascade' }),
    file_number: integer().notNull(),
    /** As the user calls it. It never becomes a path of ours. */
    path: text().notNull(),
    content_type: text(),
    content_length: bigint({ mode: 'number' }).notNull(),
  },
  (table) => [primaryKey({ columns: [table.upload_id, table.file_number] })],
);

export type UploadRow = typeof uploads.$inferSelect;
export type UploadFileRow = typeof uploadFiles.$inferSelect;
