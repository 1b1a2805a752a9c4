import { sql } from 'drizzle-orm';
import {
  bigint,
  boolean,
  index,
  integer,
  pgTable,
  primaryKey,
  text,
  timestamp,
  unique,
  uuid,
} from 'drizzle-orm/pg-core';
import { games } from '../games/tables.ts';

const moment = () => timestamp({ withTimezone: true, precision: 3, mode: 'date' });

export const UPLOAD_KINDS = [
  'build',
  'site',
  'custom_avatar',
  'game_logo',
  'game_banner',
  'group_avatar',
  'identity_avatar',
] as const;
export type UploadKind = (typeof UPLOAD_KINDS)[number];

/** Files on their way to us. Their bytes lie in the object storage; here is what was announced and what has come. */
export const uploads = pgTable(
  'uploads',
  {
    upload_id: uuid().primaryKey(),
    /** Whose it is: a game's, or else a person's. */
    game_id: uuid().references(() => games.game_id),
    identity_id: uuid(),
    /** What it will be, once it is complete. */
    kind: text({ enum: UPLOAD_KINDS }).notNull(),
    /** The quota that its bytes count against; null: none. */
    quota_scope: text(),
    is_multipart: boolean().notNull(),
    /** Of all files together. */
    content_length: bigint({ mode: 'number' }).notNull(),
    /** Bytes of the parts that have come; a part that is sent again counts once. */
    received_length: bigint({ mode: 'number' }).notNull().default(0),
    create_ts: moment().notNull(),
    /** Until when one request has it to itself, to complete it. */
    completing_until: moment(),
    complete_ts: moment(),
    /** Nothing refers to it any more: it is served no longer, and its objects are being removed. */
    discard_ts: moment(),
  },
  (table) => [
    index('uploads_by_age').on(table.create_ts),
    index('uploads_discarded').on(table.upload_id).where(sql`discard_ts is not null`),
    index('uploads_of_game').on(table.game_id, table.kind, table.create_ts),
  ],
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
    /** Of each part in its place: which of the times that it was sent counts. */
    receipts: uuid().array().notNull().default([]),
  },
  (table) => [
    primaryKey({ columns: [table.upload_id, table.file_number] }),
    unique('upload_files_path').on(table.upload_id, table.path),
  ],
);

/** The bytes that the uploads of one quota hold, and those that were announced on its latest day. */
export const uploadQuotas = pgTable('upload_quotas', {
  scope: text().primaryKey(),
  /** In UTC, as 2030-01-31. */
  day: text().notNull(),
  day_bytes: bigint({ mode: 'number' }).notNull(),
  kept_bytes: bigint({ mode: 'number' }).notNull(),
});

export type UploadRow = typeof uploads.$inferSelect;
/** The receipt of a part that has not come is null, or not there at all. */
export type UploadFileRow = Omit<typeof uploadFiles.$inferSelect, 'receipts'> & { receipts: (string | null)[] };
