import { type ArrivedFile, joinedKeyOf } from './rules.ts';

const LENGTH = 32;

/**
 * Identifies the content of a file by the objects that hold it, so a part that is sent again gives another id. Files that
 * share objects have the same id.
 */
export function contentIdOf(file: ArrivedFile): string {
  const objects = joinedKeyOf(file) ?? file.object_ids.join();
  return new Bun.CryptoHasher('sha256').update(objects).digest('hex').slice(0, LENGTH);
}
