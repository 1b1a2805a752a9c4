import { bigint, index, jsonb, pgTable, text, uuid } from 'drizzle-orm/pg-core';
import { moment } from '../../platform/database/columns.ts';
import { games } from '../games/tables.ts';
import { uploads } from '../uploads/tables.ts';

/** Kinds of build: Muster's own, and the containers of the reference API. The runtimes decide which can run. */
export const BUILD_KINDS = ['archive', 'javascript', 'docker_image', 'oci_bundle'] as const;
export type BuildKind = (typeof BUILD_KINDS)[number];

/** Kinds as they are stored. A contained archive is one that runs in a container, on the operator's base image. */
export const STORED_KINDS = [...BUILD_KINDS, 'contained_archive'] as const;
export type StoredKind = (typeof STORED_KINDS)[number];

/** Game servers as their developers uploaded them. */
export const builds = pgTable(
  'builds',
  {
    build_id: uuid().primaryKey(),
    game_id: uuid()
      .notNull()
      .references(() => games.game_id),
    /** The environment it was created in. Null for the whole game. */
    namespace_id: uuid(),
    upload_id: uuid()
      .notNull()
      .references(() => uploads.upload_id, { onDelete: 'cascade' }),
    name: text().notNull(),
    kind: text({ enum: STORED_KINDS }).notNull(),
    image_tag: text(),
    /** The name of a script on disk; its extension selects the language. Used for a script only. */
    file_name: text().notNull(),
    /**
     * For an archive, the program and its first arguments. For an image or a bundle, the arguments that replace those of the
     * image; empty to keep those of the image.
     */
    command: jsonb().$type<string[]>().notNull(),
    tags: jsonb().$type<Record<string, string>>().notNull(),
    content_length: bigint({ mode: 'number' }).notNull(),
    /** The SHA-256 of the file in hexadecimal. Null until the file is first unpacked. */
    sha256: text(),
    create_ts: moment().notNull(),
    complete_ts: moment(),
  },
  (table) => [
    index('builds_by_game').on(table.game_id, table.create_ts),
    index('builds_by_namespace').on(table.namespace_id, table.create_ts),
    index('builds_by_upload').on(table.upload_id),
  ],
);

export type BuildRow = typeof builds.$inferSelect;
