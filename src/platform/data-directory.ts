import { dlopen, FFIType } from 'bun:ffi';
import {
  accessSync,
  chmodSync,
  closeSync,
  constants,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { StartError } from './errors.ts';

/** The folders of a data directory. Other users may pass through some of them: PostgreSQL, game servers, when we are root. */
const FOLDERS = {
  postgres: 0o711,
  objects: 0o700,
  compressed: 0o700,
  builds: 0o711,
  servers: 0o711,
  programs: 0o711,
} as const;

export interface DataDirectory extends Disposable {
  path: string;
  /** The path of one of its folders, which exists. */
  folder(name: keyof typeof FOLDERS): string;
  /** The name of this machine's share of the work, made at the first start and kept. */
  node_id: string;
  /** Writes a file that only we can read. */
  writeSecret(name: string, text: string): string;
}

/**
 * Opens the directory where everything is kept, and makes it if need be. One service at a time: the lock dies with the
 * process, so there is none to clean up. Throws {@link StartError} with what to do when it cannot be used.
 */
export function openDataDirectory(wanted: string): DataDirectory {
  // A stricter one of whoever starts us would shut out those users, a laxer one would let others write.
  process.umask(0o022);
  const path = attempt(wanted, () => {
    mkdirSync(wanted, { recursive: true, mode: 0o711 });
    accessSync(wanted, constants.W_OK);
    return realpathSync(wanted);
  });
  if (process.getuid?.() === 0 && !canBeEnteredByOthers(path)) {
    throw new StartError(
      `The data directory ${path} lies where other users cannot enter, but PostgreSQL and game servers do not run as root: set MUSTER_DATA to another place, for example /var/lib/muster.`,
    );
  }
  const lock_path = join(path, 'lock');
  const lock = attempt(lock_path, () => lockFile(lock_path));
  if (lock === undefined) {
    throw new StartError(
      `The data directory ${path} is in use by another Muster: stop that one, or set MUSTER_DATA to another directory.`,
    );
  }
  using opened = new DisposableStack();
  opened.defer(() => closeSync(lock));
  for (const [name, mode] of Object.entries(FOLDERS)) makeFolder(join(path, name), mode);
  const node_id_path = join(path, 'node-id');
  const node_id = attempt(node_id_path, () => readOrMakeNodeId(node_id_path));
  const everything = opened.move();
  return {
    path,
    folder: (name) => join(path, name),
    node_id,
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
    // It may have been restored from a copy.
    if ((statSync(path).mode & 0o777) !== mode) chmodSync(path, mode);
  });
}

/** Does what it needs a writable data directory for. */
function attempt<Result>(path: string, work: () => Result): Result {
  try {
    return work();
  } catch (cause) {
    const reason = cause instanceof Error && 'code' in cause ? String(cause.code) : 'unknown';
    throw new StartError(
      `The data directory cannot be written at ${path} (${reason}): give this user the right to, or set MUSTER_DATA to another directory.`,
      { cause },
    );
  }
}

const LOCK_EXCLUSIVE = 2;
const LOCK_NON_BLOCKING = 4;

/** flock(2): held as long as the file is open, whatever happens to the process. Undefined when somebody else has it. */
function lockFile(path: string): number | undefined {
  const libc = dlopen('libc.so.6', { flock: { args: [FFIType.i32, FFIType.i32], returns: FFIType.i32 } });
  const file = openSync(path, 'a', 0o600);
  if (libc.symbols.flock(file, LOCK_EXCLUSIVE | LOCK_NON_BLOCKING) === 0) return file;
  closeSync(file);
  return undefined;
}

function readOrMakeNodeId(path: string): string {
  const known = existsSync(path) ? readFileSync(path, 'utf8').trim() : '';
  if (known !== '') return known;
  const fresh = crypto.randomUUID();
  writeWhole(path, `${fresh}\n`);
  return fresh;
}

/** A file for us only: the old one or the new one, whenever we are killed. */
function writeWhole(path: string, text: string): void {
  const unfinished = `${path}.unfinished`;
  // What is there keeps its mode and its owner; only a new file gets ours.
  rmSync(unfinished, { force: true });
  writeFileSync(unfinished, text, { mode: 0o600 });
  renameSync(unfinished, path);
}

/** Whether every directory from the root down to this one lets other users pass. */
export function canBeEnteredByOthers(directory: string): boolean {
  const passes = (statSync(directory).mode & 0o001) !== 0;
  return passes && (dirname(directory) === directory || canBeEnteredByOthers(dirname(directory)));
}
