import { stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { type Config, takeConfig } from '../config.ts';
import { AUTHORITY_FILES } from '../features/certificates/local-authority.ts';
import { RESTORED_REST_MS, SET_ALL_RESTING } from '../features/machines/store.ts';
import { FORGET_UNFINISHED } from '../features/uploads/store.ts';
import { type ArchiveEntry, readArchive, throwIfUnreadable } from '../platform/backup/archive-reader.ts';
import { parseEntryName } from '../platform/backup/entries.ts';
import { type BackupHeader, readHeader } from '../platform/backup/header.ts';
import { type DataDirectory, openDataDirectory } from '../platform/data-directory.ts';
import { openConfiguredDatabase } from '../platform/database/connect.ts';
import { type Database, LOCKS } from '../platform/database/database.ts';
import { assertKnown, findOwnTables, migrateAsFarAs } from '../platform/database/migrate.ts';
import { assertFillable, type Contents, type CopyIn, fillDatabase } from '../platform/database/table-copies.ts';
import { assert, StartError } from '../platform/errors.ts';
import { createLog } from '../platform/events.ts';
import { createDiskObjects } from '../platform/objects/disk.ts';
import type { Objects } from '../platform/objects/objects.ts';
import { openS3Objects } from '../platform/objects/s3.ts';
import { createDiskSpace } from '../platform/system/disk-space.ts';
import { hasErrorCode } from '../platform/system/system-errors.ts';
import { openProgress, percent } from '../terminal/progress-line.ts';
import { terminal } from '../terminal/terminal.ts';
import type { CommandOutput } from './command-output.ts';
import { readIfThere } from './data-directory-files.ts';
import { runDatabaseCommand, sayThatItWaits } from './database-command.ts';

/** A backup that was found to be complete. */
interface Backup {
  header: BackupHeader;
  /** Calls `take` for each entry, until it returns "stop". */
  read(what: string, signal: AbortSignal, take: TakeEntry): Promise<void>;
}

type TakeEntry = (entry: ArchiveEntry) => Promise<'stop' | undefined>;

/**
 * Restores a backup to a data directory and a database without data. Checks the whole backup first. The database is filled
 * last, in one transaction: before that, a restore that was stopped or killed can be repeated.
 */
export async function restore([file = '']: string[], output: CommandOutput): Promise<number> {
  const config = takeConfig();
  return await runDatabaseCommand({ not_done: 'The backup was not restored', output }, async (signal) => {
    const backup = await openBackup(resolve(file), signal);
    const { header } = backup;
    const { own: tables, foreign } = findOwnTables(header);
    for (const { name } of foreign) terminal.say(`The table ${name} is not Muster's, and is not restored.`);
    const contents = { migrations: header.migrations, tables };
    using data = openDataDirectory(config.data_directory, header.node_id);
    await using database = await openConfiguredDatabase(config, data, createLog(config.log), { signal });
    const work = async (_: unknown, lost: AbortSignal) => {
      const stopped = AbortSignal.any([signal, lost]);
      await assertFillable(database, contents);
      await restoreFiles(backup, { data, objects: await openObjects(config, data, stopped) }, stopped);
      stopped.throwIfAborted();
      await migrateAsFarAs(database, header, { signal: stopped, onWait: sayThatItWaits });
      await restoreDatabase(backup, { database, contents }, stopped);
    };
    await database.exclusively(LOCKS.backup, work, { signal, onWait: sayThatItWaits });
    const { create_ts, node_id } = header;
    const is_other_machine = node_id !== undefined && node_id !== data.node_id;
    if (is_other_machine) console.error(otherMachine(node_id));
    const sentence = `The backup of ${create_ts} is restored: start "muster serve" with these settings.`;
    output.show({ create_ts, machine_id: node_id, is_other_machine }, sentence);
  });
}

/** Reads a whole backup. Throws StartError if it is damaged, or was made by a newer release. */
async function openBackup(path: string, signal: AbortSignal): Promise<Backup> {
  const size = await sizeOf(path);
  const read = async (what: string, signal: AbortSignal, take: TakeEntry) => {
    using progress = openProgress();
    let bytes = 0;
    const onRead = (count: number) => {
      bytes += count;
      progress.show(what, percent(bytes, size));
    };
    await readArchive(path, { signal, onRead }, take);
  };
  let header: BackupHeader | undefined;
  await read('Checking the backup', signal, async (entry) => {
    if (header) return undefined;
    header = await readHeader(path, entry);
    assertKnown(header);
    return undefined;
  });
  assert(header, 'a complete backup has a header');
  return { header, read };
}

async function sizeOf(path: string): Promise<number> {
  return await stat(path).then(
    ({ size }) => size,
    (cause: unknown) => {
      if (hasErrorCode(cause, 'ENOENT'))
        throw new StartError(`There is no file ${path}: name one that "muster backup" wrote.`, { cause });
      throwIfUnreadable(path, cause);
      throw cause;
    },
  );
}

async function openObjects(
  { s3, disk_reserve_bytes }: Config,
  data: DataDirectory,
  signal: AbortSignal,
): Promise<Objects> {
  if (s3) return await openS3Objects(s3, { signal });
  const events = { emit() {} };
  const space = createDiskSpace({ directory: data.path, reserve_bytes: disk_reserve_bytes, events });
  return createDiskObjects(data.folder('objects'), space);
}

/**
 * Restores uploaded files and files of the data directory. What is there already stays: an uploaded file of the same size,
 * or a file of the data directory with the same content. Throws StartError if it differs.
 */
async function restoreFiles(
  backup: Backup,
  { data, objects }: { data: DataDirectory; objects: Objects },
  signal: AbortSignal,
) {
  let folder: { name: string; stored: Map<string, number> } | undefined;
  const storedIn = async (name: string) => {
    if (folder?.name !== name) folder = { name, stored: await objects.list(name) };
    return folder.stored;
  };
  await backup.read('Restoring the files', signal, async ({ name, size, content }) => {
    const entry = parseEntryName(name);
    if (entry?.kind === 'data_file') await restoreDataFile(data, entry.name, content);
    if (entry?.kind !== 'object') return undefined;
    const { key } = entry;
    const stored_size = (await storedIn(key.slice(0, key.lastIndexOf('/')))).get(key);
    if (stored_size === undefined) await objects.put(key, content, size);
    else if (stored_size !== size) throw taken(`The uploaded file ${key}`, 'with another size');
    return undefined;
  });
}

async function restoreDataFile(data: DataDirectory, name: string, content: AsyncIterable<Uint8Array>): Promise<void> {
  assert(AUTHORITY_FILES.includes(name), 'a backup has only files of the data directory that it may write');
  const text = Buffer.concat(await Array.fromAsync(content)).toString();
  const existing = (await readIfThere(join(data.path, name)))?.toString();
  if (existing === undefined) data.writeSecret(name, text);
  else if (existing !== text) throw taken(join(data.path, name), 'with other content');
}

function taken(what: string, how: string): StartError {
  return new StartError(
    `${what} exists ${how} than in the backup, and a restore never overwrites data: restore to an empty data directory and storage.`,
  );
}

async function restoreDatabase(
  { header, read }: Backup,
  { database, contents }: { database: Database; contents: Contents },
  signal: AbortSignal,
): Promise<void> {
  const listed = new Set(header.tables.map(({ name }) => name));
  const shapes = new Map(contents.tables.map((table) => [table.name, table]));
  const restoreRows = (copyIn: CopyIn) =>
    read('Restoring the database', signal, async ({ name, content }) => {
      const entry = parseEntryName(name);
      if (entry?.kind !== 'table') return entry === undefined ? undefined : 'stop';
      const shape = shapes.get(entry.table);
      assert(listed.has(entry.table), 'the header of a backup has all of its tables');
      if (shape) await copyIn(shape, content);
      return undefined;
    });
  await fillDatabase(database, contents, restoreRows, {
    last_statements: [SET_ALL_RESTING, FORGET_UNFINISHED],
    signal,
  });
}

function otherMachine(node_id: string): string {
  const other = `This data directory belongs to a machine other than the one that made the backup (${node_id})`;
  const lost = `If that machine does not start within ${RESTORED_REST_MS / 60_000} minutes after the first start of this one, its servers are recorded as lost`;
  return `${other}. ${lost}, and their lobbies end.`;
}
