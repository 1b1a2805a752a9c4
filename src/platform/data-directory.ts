import { dlopen, FFIType } from 'bun:ffi';
import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  realpathSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { StartError } from './errors.ts';

/** The folders of a data directory. Other users may pass through some of them: PostgreSQL, game servers, when we are root. */
const FOLDERS = {
  postgres: 0o711,
  objects: 0o700,
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
  makeFolder(wanted, 0o711);
  const path = realpathSync(wanted);
  if (process.getuid?.() === 0 && !canBeEnteredByOthers(path)) {
    throw new StartError(
      `The data directory ${path} lies where other users cannot enter, but PostgreSQL and game servers do not run as root: set MUSTER_DATA to another place, /var/lib/muster for one.`,
    );
  }
  const lock = lockFile(join(path, 'lock'));
  if (lock === undefined) {
    throw new StartError(
      `The data directory ${path} is in use by another Muster: stop that one, or set MUSTER_DATA to another directory.`,
    );
  }
  for (const [name, mode] of Object.entries(FOLDERS)) makeFolder(join(path, name), mode);
  return {
    path,
    folder: (name) => join(path, name),
    node_id: readOrMakeNodeId(join(path, 'node-id')),
    writeSecret(name, text) {
      const file = join(path, name);
      writeFileSync(file, text, { mode: 0o600 });
      return file;
    },
    [Symbol.dispose]: () => closeSync(lock),
  };
}

function makeFolder(path: string, mode: number): void {
  try {
    mkdirSync(path, { recursive: true, mode });
    accessSync(path, constants.W_OK);
  } catch (error) {
    const reason = error instanceof Error && 'code' in error ? String(error.code) : 'unknown';
    throw new StartError(
      `The data directory cannot be written at ${path} (${reason}): give this user the right to, or set MUSTER_DATA to another directory.`,
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
  if (!existsSync(path)) writeFileSync(path, `${crypto.randomUUID()}\n`, { mode: 0o600 });
  return readFileSync(path, 'utf8').trim();
}

/** Whether every directory from the root down to this one lets other users pass. */
export function canBeEnteredByOthers(directory: string): boolean {
  const passes = (statSync(directory).mode & 0o001) !== 0;
  return passes && (dirname(directory) === directory || canBeEnteredByOthers(dirname(directory)));
}
