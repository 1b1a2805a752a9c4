import { type Static, Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { assert, StartError } from '../errors.ts';
import type { ArchiveEntry } from './archive-reader.ts';

/** The name of a backup's first entry. */
export const HEADER_ENTRY = 'muster-backup.json';
/** The format that this release writes, and the latest that it reads. */
const FORMAT = 1;
const HEADER_BYTES_MAX = 1_024 ** 2;

const Name = Type.String({ pattern: '^[a-z_][a-z0-9_]*$' });
const Header = Type.Object({
  /** The release that made the backup. */
  version: Type.String(),
  create_ts: Type.String(),
  /** The machine that made it. Absent if it had no data directory. */
  node_id: Type.Optional(Type.String({ pattern: '^[0-9a-f-]{36}$' })),
  /** The migrations of the database, in order. */
  migrations: Type.Array(
    Type.Object({ hash: Type.String(), created_at: Type.Integer(), release: Type.Optional(Type.String()) }),
    { minItems: 1 },
  ),
  /** Tables with their columns, each after those that it references. */
  tables: Type.Array(Type.Object({ name: Name, columns: Type.Array(Name, { minItems: 1 }) })),
});
export type BackupHeader = Static<typeof Header>;

export function writeHeader(header: BackupHeader): Buffer {
  assert(Value.Check(Header, header), 'a restore can read the header');
  return Buffer.from(JSON.stringify({ format: FORMAT, ...header }));
}

/** Reads the first entry of a backup. Throws StartError if it is not a header, or is in a newer format. */
export async function readHeader(path: string, { name, size, content }: ArchiveEntry): Promise<BackupHeader> {
  if (name !== HEADER_ENTRY || size > HEADER_BYTES_MAX) throw notABackup(path);
  const parsed = parse(Buffer.concat(await Array.fromAsync(content)).toString());
  const { format } = Object(parsed);
  if (Number.isInteger(format) && format > FORMAT) {
    const { version } = Object(parsed);
    throw new StartError(
      `${path} was made by Muster ${version}, whose backups this release cannot read: restore it with that release, or a later one.`,
    );
  }
  if (!Value.Check(Header, parsed)) throw notABackup(path);
  return parsed;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function notABackup(path: string): StartError {
  return new StartError(`${path} is not a backup of Muster: name a file that "muster backup" wrote.`);
}
