import { mkdir, open } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Header } from 'tar-stream';
import { hasErrorCode } from '../../../platform/system/system-errors.ts';
import { invalid, quote } from './invalid-build.ts';
import { asBytes, changedAt, isFolder, refuseSparse, type TarEntry } from './tar-entry.ts';
import {
  checkEntryCount,
  countPacked,
  IS_EMPTY,
  readTar,
  type TakeRoom,
  UNPACK_LIMITS,
  type UnpackLimits,
} from './tar-reader.ts';

interface UnpackOptions {
  limits?: UnpackLimits;
  takeRoom?: TakeRoom;
}

/**
 * Unpacks a tar into a new directory; it may be compressed. The content may be hostile: writes only files and folders
 * inside the directory, each file once, and ignores owners and modes, except that a file is executable. Throws
 * BUILDS_BUILD_INVALID with the name of the entry; then the caller removes the directory.
 */
export async function unpackArchive(
  archive: ReadableStream<Uint8Array>,
  directory: string,
  { limits = UNPACK_LIMITS, takeRoom = async () => {} }: UnpackOptions = {},
): Promise<void> {
  const count = { packed_bytes: 0, unpacked_bytes: 0, entries: 0 };
  await readTar(countPacked(archive, count), { limits, takeRoom, count }, async (entry) => {
    const path = join(directory, checkedPath(entry.header, limits));
    const is_folder = isFolder(entry.header);
    const made = await makeFolder(entry, is_folder ? path : dirname(path));
    // A folder with an entry of its own has been counted.
    count.entries += is_folder ? Math.max(0, made - 1) : made;
    checkEntryCount(count, limits);
    if (!is_folder) await writeFile(entry, path);
  });
  if (count.entries === 0) throw invalid(IS_EMPTY);
}

/** Returns the name of an entry, relative and inside the directory. Empty for the directory itself. */
function checkedPath(header: Header, limits: UnpackLimits): string {
  const { name, type, linkname } = header;
  if (type === 'symlink' || type === 'link') {
    const option = type === 'symlink' ? '--dereference' : '--hard-dereference';
    throw invalid(`${quote(name)} is a link to ${quote(linkname ?? '')}; pack the file itself (tar ${option})`);
  }
  refuseSparse(header);
  if (type !== 'file' && type !== 'contiguous-file' && type !== 'directory') {
    throw invalid(`${quote(name)} is neither a file nor a folder`);
  }
  const is_folder = isFolder(header);
  const segments = (is_folder ? withoutEndSlashes(name) : name).split('/');
  while (segments[0] === '.') segments.shift();
  const is_inside =
    !name.startsWith('/') && segments.every((segment) => segment !== '' && segment !== '.' && segment !== '..');
  // File names must not have control characters or backslashes. U+FFFD replaces bytes that are not UTF-8, so the file
  // could not be found by its name.
  if (!is_inside || /[\p{Cc}\\\ufffd]/u.test(name))
    throw invalid(`${quote(name)} is not a plain path inside the archive`);
  if (segments.some((segment) => Buffer.byteLength(segment) > 255)) {
    throw invalid(`the name ${quote(name)}… is too long`);
  }
  if (segments.length > limits.depth) throw invalid(`${quote(name)} is more than ${limits.depth} folders deep`);
  if (segments.length === 0 && !is_folder) throw invalid('an entry has no name');
  return segments.join('/');
}

function withoutEndSlashes(name: string): string {
  let end = name.length;
  while (name[end - 1] === '/') end -= 1;
  return name.slice(0, end);
}

/** Makes a folder and those above it. Returns how many were missing. */
async function makeFolder(entry: TarEntry, path: string): Promise<number> {
  try {
    const first_made = await mkdir(path, { recursive: true, mode: 0o755 });
    return first_made === undefined ? 0 : path.slice(first_made.length).split('/').length;
  } catch (error) {
    if (!hasErrorCode(error, 'EEXIST') && !hasErrorCode(error, 'ENOTDIR')) throw error;
    throw invalid(`${quote(entry.header.name)} needs a folder where the archive has a file`, error);
  }
}

async function writeFile(entry: TarEntry, file: string): Promise<void> {
  const is_executable = (entry.header.mode & 0o111) !== 0;
  // With "wx" the file system refuses a second entry of one name, or one where a folder is.
  const handle = await open(file, 'wx', is_executable ? 0o755 : 0o644).catch((error: unknown) => {
    throw hasErrorCode(error, 'EEXIST') ? invalid(`${quote(entry.header.name)} occurs twice`, error) : error;
  });
  try {
    for await (const chunk of entry) {
      await handle.writeFile(asBytes(chunk));
    }
    await handle.utimes(changedAt(entry.header), changedAt(entry.header));
  } finally {
    await handle.close();
  }
}
