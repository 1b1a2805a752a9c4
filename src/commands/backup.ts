import { stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { type Config, takeConfig } from '../config.ts';
import { AUTHORITY_FILES } from '../features/certificates/local-authority.ts';
import { KEPT_UPLOADS, type KeptUpload, selectKeptObjects } from '../features/uploads/kept-objects.ts';
import { type Archive, writeArchive } from '../platform/backup/archive-writer.ts';
import { dataFileEntry, objectEntry, tableEntry } from '../platform/backup/entries.ts';
import { HEADER_ENTRY, writeHeader } from '../platform/backup/header.ts';
import { type Database, LOCKS } from '../platform/database/database.ts';
import { findOwnTables } from '../platform/database/migrate.ts';
import { copyDatabase, type Snapshot, type TableShape } from '../platform/database/table-copies.ts';
import { StartError } from '../platform/errors.ts';
import { isUuid } from '../platform/http/shapes.ts';
import { createDiskObjects } from '../platform/objects/disk.ts';
import type { Objects } from '../platform/objects/objects.ts';
import { openS3Objects } from '../platform/objects/s3.ts';
import { MARKS_FOLDER } from '../platform/objects/storage-mark.ts';
import { VERSION } from '../platform/version.ts';
import { showBytes } from '../terminal/bytes.ts';
import { openProgress, type Progress } from '../terminal/progress-line.ts';
import { terminal } from '../terminal/terminal.ts';
import type { CommandOutput } from './command-output.ts';
import { asReadError, readIfThere } from './data-directory-files.ts';
import { runDatabaseCommand, sayThatItWaits } from './database-command.ts';
import { openOwnDatabase } from './service-database.ts';

/** Rows are collected into entries of about this size, because an entry of a tar begins with its length. */
const PIECE_BYTES = 4 * 1024 ** 2;
/** The start after a restore creates a new epoch, so that watchers do not compare versions from before and after it. */
const NOT_BACKED_UP = new Set(['epochs']);

/** What a backup is made from. */
interface Source extends AsyncDisposable {
  database: Database;
  objects: Objects;
  data_directory: string;
}

interface Target {
  archive: Archive;
  /** Shows what is being done. */
  say(what: string): void;
}

/**
 * Writes the database, the uploaded files and the keys of this machine's service to one file, whether the service runs or
 * not. The file has the database of one moment, and all files that it names.
 */
export async function backup([file = '']: string[], output: CommandOutput): Promise<number> {
  const config = takeConfig();
  const path = resolve(file);
  return await runDatabaseCommand({ not_done: 'The backup was not made', output }, async (signal) => {
    using progress = openProgress();
    await using source = await openSource(config, signal);
    // Only one backup at a time, during which the service removes no uploaded files.
    const work = (_: unknown, lost: AbortSignal) =>
      writeBackup(source, { path, signal: AbortSignal.any([signal, lost]), progress });
    await source.database.exclusively(LOCKS.backup, work, { signal, onWait: sayThatItWaits });
    const { size: bytes } = await stat(path);
    output.show({ file: path, bytes }, `The backup is ${path} (${showBytes(bytes)}). It contains secret keys.`);
  });
}

async function openSource(config: Config, signal: AbortSignal): Promise<Source> {
  const { data_directory, s3 } = config;
  await using opened = new AsyncDisposableStack();
  const database = await openOwnDatabase(config, opened, signal);
  const objects = s3 ? await openS3Objects(s3, { signal }) : createDiskObjects(join(data_directory, 'objects'));
  const everything = opened.move();
  return { database, objects, data_directory, [Symbol.asyncDispose]: () => everything.disposeAsync() };
}

async function writeBackup(
  source: Source,
  { path, signal, progress }: { path: string; signal: AbortSignal; progress: Progress },
): Promise<void> {
  let written = 0;
  let what = '';
  const say = (now: string) => {
    what = now;
    progress.show(what, showBytes(written));
  };
  const onWritten = (bytes: number) => {
    written += bytes;
    say(what);
  };
  await writeArchive(path, { signal, onWritten, onChecking: () => say('Checking the backup') }, async (archive) => {
    const target = { archive, say };
    const uploads = await copyDatabase(source.database, (snapshot) => addDatabase(target, source, snapshot));
    await addDataFiles(target, source);
    await addObjects(target, source, uploads);
  });
}

/** Adds the tables. Returns the uploads that they name. */
async function addDatabase(
  { archive, say }: Target,
  { data_directory }: Source,
  snapshot: Snapshot,
): Promise<KeptUpload[]> {
  const { migrations } = snapshot;
  if (migrations.length === 0) {
    throw new StartError('The database has no data of Muster yet: start "muster serve" first.');
  }
  const { own, foreign } = findOwnTables(snapshot);
  for (const { name } of foreign) terminal.say(`The table ${name} is not Muster's, and is not in the backup.`);
  const tables = own.filter(({ name }) => !NOT_BACKED_UP.has(name));
  const node_id = await readNodeId(join(data_directory, 'node-id'));
  const create_ts = new Date().toISOString();
  const header = writeHeader({ version: VERSION, create_ts, migrations, tables, ...(node_id && { node_id }) });
  await archive.add(HEADER_ENTRY, [header], header.length);
  for (const table of tables) {
    say(`Copying the table ${table.name}`);
    await addTable(archive, snapshot, table);
  }
  return await snapshot.read<KeptUpload>(KEPT_UPLOADS);
}

async function readNodeId(path: string): Promise<string | undefined> {
  const node_id = (await readIfThere(path))?.toString().trim();
  if (node_id && !isUuid(node_id)) {
    throw new StartError(`${path} has no id of a machine: restore it, or remove it if this machine is a new one.`);
  }
  return node_id;
}

async function addTable(archive: Archive, snapshot: Snapshot, table: TableShape): Promise<void> {
  let pieces = 0;
  let rows: Uint8Array[] = [];
  let bytes = 0;
  const addPiece = async () => {
    pieces += 1;
    await archive.add(tableEntry(table.name, pieces), [Buffer.concat(rows)], bytes);
    rows = [];
    bytes = 0;
  };
  for await (const row of snapshot.copyOut(table)) {
    rows.push(row);
    bytes += row.length;
    if (bytes >= PIECE_BYTES) await addPiece();
  }
  if (bytes > 0) await addPiece();
}

async function addDataFiles({ archive }: Target, { data_directory }: Source): Promise<void> {
  for (const name of AUTHORITY_FILES) {
    const content = await readIfThere(join(data_directory, name));
    if (content) await archive.add(dataFileEntry(name), [content], content.length);
  }
}

/** Adds the files of the uploads, and the mark by which a service recognizes its storage. */
async function addObjects({ archive, say }: Target, source: Source, uploads: KeptUpload[]): Promise<void> {
  const { database, objects } = source;
  const addAll = async (keys: { key: string; length: number }[], stored: Map<string, number>) => {
    for (const { key, length } of keys) {
      if (stored.get(key) !== length) throw missing(key);
      const content = await objects.read(key).catch(rethrowAsReadError);
      await archive.add(objectEntry(key), withReadErrors(key, content), length);
    }
  };
  const list = (folder: string) => objects.list(folder).catch(rethrowAsReadError);
  const marks = await list(MARKS_FOLDER);
  await addAll(
    [...marks].map(([key, length]) => ({ key, length })),
    marks,
  );
  for (const [index, upload] of uploads.entries()) {
    say(`Copying the files of upload ${index + 1} of ${uploads.length}`);
    const kept = await selectKeptObjects(database.queries, upload);
    await addAll(kept, await list(upload.upload_id));
  }
}

/** Yields the content of an uploaded file. A failed read throws StartError: a store reads the file while this is consumed. */
async function* withReadErrors(key: string, content: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  try {
    yield* content;
  } catch (cause) {
    throw asReadError(cause, key);
  }
}

function rethrowAsReadError(cause: unknown): never {
  throw asReadError(cause);
}

function missing(key: string): StartError {
  return new StartError(
    `The uploaded file ${key} is missing in the storage, or has another size: run this on the machine of the uploaded files, with the settings of "muster serve".`,
  );
}
