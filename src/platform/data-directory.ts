import {
  accessSync,
  chmodSync,
  closeSync,
  constants,
  existsSync,
  fstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { canBeEnteredByOthers } from '../default-data-directory.ts';
import { StartError } from './errors.ts';
import { isShortOfSpace } from './system/disk-space.ts';
import { tryLock } from './system/libc.ts';
import { BOOT_ID } from './system/processes.ts';

/** The folders of a data directory. If the service runs as root, other users (PostgreSQL, game servers) enter some. */
const FOLDERS = {
  postgres: 0o711,
  objects: 0o700,
  compressed: 0o700,
  builds: 0o711,
  servers: 0o711,
  containers: 0o700,
  engine: 0o700,
  kubernetes: 0o700,
  programs: 0o711,
} as const;

export interface DataDirectory extends Disposable {
  path: string;
  /** Returns the path of a folder, which exists. */
  folder(name: keyof typeof FOLDERS): string;
  /** The id of this machine among those on one database. Created at the first start. */
  node_id: string;
  /** Identifies the directory on this machine since its boot. A copy of the directory has another place. */
  place: string;
  /** Writes a file that only this user can read. Returns its path. */
  writeSecret(name: string, text: string): string;
}

/**
 * Opens the data directory, and creates it if it is missing. A lock, which ends with the process, keeps other services
 * from using it. Throws StartError if the directory cannot be used. A new directory gets the id `new_node_id`.
 */
export function openDataDirectory(wanted: string, new_node_id?: string): DataDirectory {
  const data = openUnlessInUse(wanted, new_node_id);
  if (data) return data;
  throw new StartError(
    `The data directory ${realpathSync(wanted)} is in use by another Muster: stop that one, or set MUSTER_DATA to another directory.`,
  );
}

/** Opens the data directory like `openDataDirectory`. Returns undefined if another process uses it. */
export function openUnlessInUse(wanted: string, new_node_id?: string): DataDirectory | undefined {
  // A stricter umask would keep PostgreSQL and game servers out, a laxer one would let other users write.
  process.umask(0o022);
  const path = attempt(wanted, () => {
    mkdirSync(wanted, { recursive: true, mode: 0o711 });
    accessSync(wanted, constants.W_OK);
    return realpathSync(wanted);
  });
  if (process.getuid?.() === 0 && !canBeEnteredByOthers(path)) {
    throw new StartError(
      `The data directory ${path} is below a directory that other users cannot enter, but PostgreSQL and game servers do not run as root: set MUSTER_DATA to another directory, for example /var/lib/muster.`,
    );
  }
  const lock_path = join(path, 'lock');
  const lock = attempt(lock_path, () => lockFile(lock_path));
  if (lock === undefined) return undefined;
  using opened = new DisposableStack();
  opened.defer(() => closeSync(lock));
  for (const [name, mode] of Object.entries(FOLDERS)) makeFolder(join(path, name), mode);
  const node_id_path = join(path, 'node-id');
  const node_id = attempt(node_id_path, () => readOrMakeNodeId(node_id_path, new_node_id));
  const everything = opened.move();
  return {
    path,
    folder: (name) => join(path, name),
    node_id,
    place: placeOf(lock),
    writeSecret(name, text) {
      const file = join(path, name);
      attempt(file, () => writeWhole(file, text));
      return file;
    },
    [Symbol.dispose]: () => everything.dispose(),
  };
}

function makeFolder(path: string, mode: number): void {
  attempt(path, () => {
    mkdirSync(path, { recursive: true, mode });
    accessSync(path, constants.W_OK);
    // A directory restored from a backup may have another mode.
    if ((statSync(path).mode & 0o777) !== mode) chmodSync(path, mode);
  });
}

/** Runs `work`, which needs a writable data directory. Throws StartError with the path if it fails. */
function attempt<Result>(path: string, work: () => Result): Result {
  try {
    return work();
  } catch (cause) {
    const reason = cause instanceof Error && 'code' in cause ? String(cause.code) : 'unknown';
    const advice = isShortOfSpace(cause) ? 'free space on its disk' : 'let this user write there';
    throw new StartError(
      `The data directory cannot be written at ${path} (${reason}): ${advice}, or set MUSTER_DATA to another directory.`,
      { cause },
    );
  }
}

/** Returns the descriptor of the locked file, whose lock ends with the process; undefined if another process holds it. */
function lockFile(path: string): number | undefined {
  const file = openSync(path, 'a', 0o600);
  if (tryLock(file)) return file;
  closeSync(file);
  return undefined;
}

function placeOf(lock: number): string {
  const { dev, ino } = fstatSync(lock);
  return `${BOOT_ID}:${dev}:${ino}`;
}

function readOrMakeNodeId(path: string, fresh: string = crypto.randomUUID()): string {
  const known = existsSync(path) ? readFileSync(path, 'utf8').trim() : '';
  if (known !== '') return known;
  writeWhole(path, `${fresh}\n`);
  return fresh;
}

/** Writes a file for this user only. If the process is killed, the file is the old one or the new one. */
function writeWhole(path: string, text: string): void {
  const unfinished = `${path}.unfinished`;
  // An existing file would keep its mode and owner.
  rmSync(unfinished, { force: true });
  writeFileSync(unfinished, text, { mode: 0o600 });
  renameSync(unfinished, path);
}
