import { ptr } from 'bun:ffi';
import { systemCall, trySystemCall } from './system-calls.ts';

// Files by system calls. Loading node:fs takes 3 ms of a processor, for which the start of every game server would wait.

/** Begins paths at the working directory. */
const AT_FDCWD = -100;
const READ_BYTES = 65_536;
/** The error number for a path that leads to no directory. */
export const ENOTDIR = 20;

/** Flags to open files with, as the kernel of this machine reads them. */
export const OPEN = {
  read: 0,
  write: 1,
  /** Only to name the file, so it need not be readable. */
  name: 0o10000000,
  directory: process.arch === 'arm64' ? 0o40000 : 0o200000,
} as const;

/** Opens a file. Returns its descriptor, which is negative after a failure: then it is the error number. */
export function tryOpenFile(path: string, flags: number): number {
  return trySystemCall('openat', AT_FDCWD, ptr(pathOf(path)), flags);
}

/** Opens a file that must exist. Throws an error that names it. */
export function openFile(path: string, flags: number): number {
  const file = tryOpenFile(path, flags);
  if (file < 0) throw new Error(`${path} cannot be opened: error ${-file}`);
  return file;
}

export function closeFile(file: number): void {
  systemCall('close', file);
}

/** Reads an open file from its position to its end, as UTF-8. */
export function readOpenFile(file: number): string {
  const pieces: Uint8Array[] = [];
  for (;;) {
    const piece = new Uint8Array(READ_BYTES);
    const count = systemCall('read', file, ptr(piece), READ_BYTES);
    if (count === 0) return Buffer.concat(pieces).toString();
    pieces.push(piece.subarray(0, count));
  }
}

export function readFile(path: string): string {
  const file = openFile(path, OPEN.read);
  try {
    return readOpenFile(file);
  } finally {
    closeFile(file);
  }
}

/** Writes a short text to an open file. */
export function writeOpenFile(file: number, text: string): void {
  const bytes = Buffer.from(text);
  systemCall('write', file, ptr(bytes), bytes.byteLength);
}

/** Writes a short text to an existing file. */
export function writeFile(path: string, text: string): void {
  const file = openFile(path, OPEN.write);
  try {
    writeOpenFile(file, text);
  } finally {
    closeFile(file);
  }
}

/** Changes the working directory. Throws an error that names it if that is impossible. */
export function changeDirectory(path: string): void {
  const result = trySystemCall('chdir', ptr(pathOf(path)));
  if (result < 0) throw new Error(`${path} cannot be entered: error ${-result}`);
}

const pathOf = (path: string): Uint8Array => Buffer.from(`${path}\0`);
