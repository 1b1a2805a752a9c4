import type { Queries } from '../../platform/database/database.ts';
import { objectsOf } from './rules.ts';
import { selectFiles } from './store.ts';
import type { Splitting } from './tables.ts';

/** A complete upload that is not discarded. Its objects never change. */
export interface KeptUpload extends Splitting {
  upload_id: string;
}

/** The query of all kept uploads. A backup runs it on its snapshot. */
export const KEPT_UPLOADS = `
  select upload_id::text, is_multipart, part_bytes from uploads
  where complete_ts is not null and discard_ts is null order by upload_id`;

/** Returns the objects of an upload, with their lengths in bytes. */
export async function selectKeptObjects(
  queries: Queries,
  { upload_id, ...splitting }: KeptUpload,
): Promise<{ key: string; length: number }[]> {
  const files = await selectFiles(queries, upload_id);
  return files.flatMap((file) => objectsOf(file, splitting));
}
