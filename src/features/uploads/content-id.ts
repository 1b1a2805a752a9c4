import type { UploadFileRow } from './tables.ts';

const LENGTH = 32;

type HeldFile = Pick<UploadFileRow, 'upload_id' | 'file_number' | 'object_ids'>;

/**
 * Identifies the content of a file by the objects that hold it, so a part that is sent again gives another id. Files that
 * share objects have the same id.
 */
export function contentIdOf({ upload_id, file_number, object_ids }: HeldFile): string {
  // Before migration 0009 the parts of a complete file were joined into one object, named after the file.
  const objects = object_ids.length > 0 ? object_ids.join() : `${upload_id}/${file_number}`;
  return new Bun.CryptoHasher('sha256').update(objects).digest('hex').slice(0, LENGTH);
}
