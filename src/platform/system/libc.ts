import { ptr as addressOf, dlopen, FFIType, read } from 'bun:ffi';

const { i32, i64, u32, u64, ptr } = FFIType;

/** Functions of the C library that neither Bun nor Node offers. */
export const { symbols: libc } = dlopen('libc.so.6', {
  flock: { args: [i32, i32], returns: i32 },
  fallocate: { args: [i32, i32, i64, i64], returns: i32 },
  fcntl: { args: [i32, i32], returns: i32 },
  close: { args: [i32], returns: i32 },
  socket: { args: [i32, i32, i32], returns: i32 },
  bind: { args: [i32, ptr, u32], returns: i32 },
  getsockname: { args: [i32, ptr, ptr], returns: i32 },
  getpeername: { args: [i32, ptr, ptr], returns: i32 },
  getsockopt: { args: [i32, i32, i32, ptr, ptr], returns: i32 },
  setsockopt: { args: [i32, i32, i32, ptr, u32], returns: i32 },
  shutdown: { args: [i32, i32], returns: i32 },
  waitpid: { args: [i32, ptr, i32], returns: i32 },
  getxattr: { args: [ptr, ptr, ptr, u64], returns: i64 },
  getpagesize: { args: [], returns: i32 },
  syscall: { args: [i64, i64, ptr, u64], returns: i64 },
  __errno_location: { args: [], returns: ptr },
});

const LOCK_EXCLUSIVE = 2;
const LOCK_NON_BLOCKING = 4;

/** Locks an open file (flock(2)) until it is closed. Returns false if another process holds the lock. */
export function tryLock(descriptor: number): boolean {
  return libc.flock(descriptor, LOCK_EXCLUSIVE | LOCK_NON_BLOCKING) === 0;
}

const FALLOC_KEEP_SIZE = 1;
const FALLOC_PUNCH_HOLE = 2;

/** Frees the disk blocks of a file's first bytes and keeps all offsets (fallocate(2)), if its file system can. */
export function punchHole(descriptor: number, length: number): void {
  libc.fallocate(descriptor, FALLOC_PUNCH_HOLE | FALLOC_KEEP_SIZE, 0n, BigInt(length));
}

const WNOHANG = 1;

/** Removes a child that has ended from the table of processes (waitpid(2)). No other code may wait for its end. */
export function reapChild(pid: number): void {
  libc.waitpid(pid, null, WNOHANG);
}

const ATTRIBUTE_BYTES_MAX = 64;

/** Returns an extended attribute of a file (getxattr(2)); undefined if it has none, or only a long one. */
export function readAttribute(path: string, name: string): string | undefined {
  const value = Buffer.alloc(ATTRIBUTE_BYTES_MAX);
  const [of_path, of_name] = [Buffer.from(`${path}\0`), Buffer.from(`${name}\0`)];
  const length = Number(libc.getxattr(addressOf(of_path), addressOf(of_name), addressOf(value), value.length));
  return length < 0 ? undefined : value.toString('utf8', 0, length);
}

const GETDENTS64 = process.arch === 'arm64' ? 61 : 217;
const ENOENT = 2;
/** Where struct linux_dirent64 has its length and its name. */
const [LENGTH_AT, NAME_AT] = [16, 19];
const names_buffer = Buffer.alloc(65_536);

/**
 * Reads the next names in an open folder (getdents64(2)); an empty list at its end. Bun's functions read all names at
 * once, and a folder may have millions.
 */
export function readNames(descriptor: number): Buffer[] {
  const names: Buffer[] = [];
  // A piece may have nothing but the folder itself and its parent.
  while (names.length === 0) {
    const length = Number(libc.syscall(GETDENTS64, descriptor, addressOf(names_buffer), names_buffer.length));
    if (length < 0) {
      const errno = readErrno();
      // The folder was removed meanwhile.
      if (errno === ENOENT) return [];
      throw new Error(`the names in a folder could not be read: error ${errno}`);
    }
    if (length === 0) return [];
    for (let at = 0; at < length; at += names_buffer.readUInt16LE(at + LENGTH_AT)) {
      const start = at + NAME_AT;
      const name = names_buffer.subarray(start, names_buffer.indexOf(0, start));
      if (!isFolderItself(name)) names.push(Buffer.from(name));
    }
  }
  return names;
}

const DOT = 0x2e;
const isFolderItself = (name: Buffer) =>
  name[0] === DOT && (name.length === 1 || (name.length === 2 && name[1] === DOT));

function readErrno(): number {
  const location = libc.__errno_location();
  return location === null ? 0 : read.i32(location, 0);
}
