import type { UploadFileRow } from './tables.ts';

const LENGTH = 32;

/** Identifies the content of a file by the objects that hold it, so a part that is sent again gives another id. */
export function contentIdOf({ receipts }: Pick<UploadFileRow, 'receipts'>): string {
  return new Bun.CryptoHasher('sha256').update(receipts.join()).digest('hex').slice(0, LENGTH);
}
