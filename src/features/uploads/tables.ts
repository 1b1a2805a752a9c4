import { sql } from 'drizzle-orm';
import { bigint, boolean, index, integer, pgTable, primaryKey, text, unique, uuid } from 'drizzle-orm/pg-core';
import { moment } from '../../platform/database/columns.ts';
import { games } from '../games/tables.ts';

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

/** Uploads. The object storage holds their bytes; these tables hold what was announced and what has arrived. */
export const uploads = pgTable(
  'uploads',
  {
    upload_id: uuid().primaryKey(),
    /** The owner: a game, or an identity. */
    game_id: uuid().references(() => games.game_id),
    identity_id: uuid(),
    /** What is uploaded; it decides which feature checks and completes the upload. */
    kind: text({ enum: UPLOAD_KINDS }).notNull(),
    /** The quota that counts its bytes. Null for none. */
    quota_scope: text(),
    is_multipart: boolean().notNull(),
    /** Length of the parts of a file but the last, if it is sent in parts. Null for 100 MiB. */
    part_bytes: integer(),
    /** Bytes of all files together. */
    content_length: bigint({ mode: 'number' }).notNull(),
    /** Bytes of the parts that have arrived, and of the files that need not be sent. A part sent twice counts once. */
    received_length: bigint({ mode: 'number' }).notNull().default(0),
    create_ts: moment().notNull(),
    /** Until when one request has the exclusive right to complete it. */
    completing_until: moment(),
    complete_ts: moment(),
    /** When it was discarded. It is no longer served, and its objects are being removed. */
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
    /** The game of the upload, so that a search for a digest reads the files of one game only. Null for none. */
    game_id: uuid(),
    /** The path that the user chose. It never becomes a path on the disk of the service. */
    path: text().notNull(),
    content_type: text(),
    content_length: bigint({ mode: 'number' }).notNull(),
    /**
     * The id of the stored object of each part, in order. A part that is sent again is a new object. The column has its earlier
     * name, which an earlier release may use beside this one during an upgrade.
     */
    object_ids: uuid('receipts').array().notNull().default([]),
    /** The announced digest of a file that is one part. Its content was checked when it arrived. Null for none. */
    sha256: text(),
    /** The file whose objects this one shares, because both have the same content. Null for objects of its own. */
    shared_upload_id: uuid(),
    shared_file_number: integer(),
  },
  (table) => [
    primaryKey({ columns: [table.upload_id, table.file_number] }),
    unique('upload_files_path').on(table.upload_id, table.path),
    index('upload_files_of_game_by_digest').on(table.game_id, table.sha256).where(sql`sha256 is not null`),
  ],
);

/** Stored bytes of each quota, and those announced on its latest day. */
export const uploadQuotas = pgTable('upload_quotas', {
  scope: text().primaryKey(),
  /** The day in UTC, like 2030-01-31. */
  day: text().notNull(),
  day_bytes: bigint({ mode: 'number' }).notNull(),
  kept_bytes: bigint({ mode: 'number' }).notNull(),
});

export type UploadRow = typeof uploads.$inferSelect;
/** How the files of an upload are split. */
export type Splitting = Pick<UploadRow, 'is_multipart' | 'part_bytes'>;
/** A file. The id of a part that has not arrived is null or missing. */
export type UploadFileRow = Omit<typeof uploadFiles.$inferSelect, 'game_id' | 'object_ids'> & {
  object_ids: (string | null)[];
};
