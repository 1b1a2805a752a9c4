import type { UploadFileRow } from './tables.ts';

const LENGTH = 32;

/** Identifies the content of a file by the objects that hold it, so a part that is sent again gives another id. */
export function contentIdOf({ object_ids }: Pick<UploadFileRow, 'object_ids'>): string {
  return new Bun.CryptoHasher('sha256').update(object_ids.join()).digest('hex').slice(0, LENGTH);
}
