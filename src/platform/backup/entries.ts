/**
 * The entries of a backup between its header and its end: a piece of a table, a file of the data directory, or an uploaded
 * file.
 */
export type BackupEntry =
  | { kind: 'table'; table: string }
  | { kind: 'data_file'; name: string }
  | { kind: 'object'; key: string };

export const tableEntry = (table: string, piece: number): string => `database/${table}/${piece}`;
export const dataFileEntry = (name: string): string => `data/${name}`;
export const objectEntry = (key: string): string => `objects/${key}`;

/** Returns what an entry is; undefined for an unknown name. */
export function parseEntryName(name: string): BackupEntry | undefined {
  const [folder, ...rest] = name.split('/');
  const below = rest.join('/');
  const [first = ''] = rest;
  switch (folder) {
    case 'database':
      return { kind: 'table', table: first };
    case 'data':
      return { kind: 'data_file', name: below };
    case 'objects':
      return { kind: 'object', key: below };
    default:
      return undefined;
  }
}
