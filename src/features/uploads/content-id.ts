import type { UploadFileRow } from './tables.ts';

const LENGTH = 32;

/** Names the content of a file by the objects that hold it: a part that is sent again makes it another content. */
export function contentIdOf({ receipts }: Pick<UploadFileRow, 'receipts'>): string {
  return new Bun.CryptoHasher('sha256').update(receipts.join()).digest('hex').slice(0, LENGTH);
}
