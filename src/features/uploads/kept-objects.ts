import { sql } from 'drizzle-orm';
import type { Queries } from '../../platform/database/database.ts';
import { objectsOf } from './rules.ts';
import type { Splitting, UploadFileRow } from './tables.ts';

/** A complete upload that is not discarded. Its objects never change. */
export interface KeptUpload extends Splitting {
  upload_id: string;
}

// A backup may be made of a database that an earlier release migrated, so later columns are read as members of the row.

/** The query of all kept uploads. A backup runs it on its snapshot. */
export const KEPT_UPLOADS = `
  select upload_id::text, is_multipart, (to_jsonb(uploads) ->> 'part_bytes')::int as part_bytes from uploads
  where complete_ts is not null and to_jsonb(uploads) ->> 'discard_ts' is null order by upload_id`;

/** Returns the objects of an upload, with their lengths in bytes. */
export async function selectKeptObjects(
  queries: Queries,
  { upload_id, ...splitting }: KeptUpload,
): Promise<{ key: string; length: number }[]> {
  const files = await queries.execute<UploadFileRow & Record<string, unknown>>(sql`
    select upload_id::text, file_number, path, content_type, content_length::float8 as content_length,
      coalesce(members -> 'receipts', '[]') as object_ids, members ->> 'sha256' as sha256,
      members ->> 'shared_upload_id' as shared_upload_id, (members ->> 'shared_file_number')::int as shared_file_number
    from upload_files as file cross join to_jsonb(file) as members
    where upload_id = ${upload_id} order by file_number`);
  return files.flatMap((file) => objectsOf(file, splitting));
}
