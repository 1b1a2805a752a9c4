import { expect, test } from 'bun:test';
import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sql } from 'drizzle-orm';
import journal from '../../drizzle/meta/_journal.json' with { type: 'json' };
import { findAsset } from '../../src/platform/assets.ts';
import { type Database, openDatabase } from '../../src/platform/database/database.ts';
import { migrateDatabase } from '../../src/platform/database/migrate.ts';
import { openExternalDatabase } from '../support/database.ts';

const MIB = 1024 ** 2;
/** Receipts of parts; a part that has not arrived has null, or none at the end. */
const HERE = crypto.randomUUID();

interface OldUpload {
  is_multipart: boolean;
  is_complete?: boolean;
  files: { content_length: number; receipts: (string | null)[] }[];
}

/** Migrates a database up to a migration, that one excluded. */
async function migrateUntil(database: Database, tag: string): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'muster-migrations-'));
  await cp(findAsset('drizzle'), folder, { recursive: true });
  const index = journal.entries.findIndex((entry) => entry.tag === tag);
  expect(index).toBeGreaterThan(0);
  const entries = journal.entries.slice(0, index);
  await writeFile(join(folder, 'meta/_journal.json'), JSON.stringify({ ...journal, entries }));
  await migrateDatabase(database, { version: 'before', folder });
  await rm(folder, { recursive: true });
}

async function insertUpload({ queries }: Database, { is_multipart, is_complete = false, files }: OldUpload) {
  const upload_id = crypto.randomUUID();
  const content_length = files.reduce((sum, file) => sum + file.content_length, 0);
  await queries.execute(sql`
    insert into uploads (upload_id, kind, is_multipart, content_length, create_ts, complete_ts)
    values (${upload_id}, 'build', ${is_multipart}, ${content_length}, now(), case when ${is_complete}::boolean then now() end)`);
  for (const [number, file] of files.entries()) {
    await queries.execute(sql`
      insert into upload_files (upload_id, file_number, path, content_length, receipts)
      values (${upload_id}, ${number}, ${`file-${number}`}, ${file.content_length}, ${sql.param(file.receipts)}::uuid[])`);
  }
  return upload_id;
}

test('0023_received-length: uploads that were under way have the bytes of the parts that had arrived', async () => {
  await using external = await openExternalDatabase();
  await using database = openDatabase({ url: external.url }, 2);
  await migrateUntil(database, '0023_received-length');
  const cases: [what: string, upload: OldUpload, received_length: number][] = [
    ['nothing has arrived', { is_multipart: false, files: [{ content_length: 5, receipts: [] }] }, 0],
    ['a file has arrived', { is_multipart: false, files: [{ content_length: 5, receipts: [HERE] }] }, 5],
    [
      'a file above the size of a part, sent as one',
      { is_multipart: false, files: [{ content_length: 250 * MIB, receipts: [HERE] }] },
      250 * MIB,
    ],
    [
      'one file of two',
      {
        is_multipart: false,
        files: [
          { content_length: 5, receipts: [] },
          { content_length: 7, receipts: [HERE] },
        ],
      },
      7,
    ],
    [
      'the first and the last part of three',
      { is_multipart: true, files: [{ content_length: 250 * MIB, receipts: [HERE, null, HERE] }] },
      150 * MIB,
    ],
    [
      'the second part',
      { is_multipart: true, files: [{ content_length: 250 * MIB, receipts: [null, HERE] }] },
      100 * MIB,
    ],
    ['an empty file', { is_multipart: true, files: [{ content_length: 0, receipts: [HERE] }] }, 0],
    // Of a complete upload its length is shown.
    ['complete', { is_multipart: false, is_complete: true, files: [{ content_length: 5, receipts: [HERE] }] }, 0],
  ];
  const upload_ids = await Promise.all(cases.map(([, upload]) => insertUpload(database, upload)));
  await migrateDatabase(database);
  const rows = await database.queries.execute<{ upload_id: string; received_length: string }>(
    sql`select upload_id, received_length from uploads`,
  );
  const received = new Map(rows.map((row) => [row.upload_id, Number(row.received_length)]));
  expect(cases.map(([what], index) => [what, received.get(upload_ids[index] ?? '')])).toEqual(
    cases.map(([what, , received_length]) => [what, received_length]),
  );
}, 90_000);
