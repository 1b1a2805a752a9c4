import { lstat, readdir } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { pack } from 'tar-stream';

/** An entry as tar-stream writes it; by default a file. */
export interface TarEntry {
  name: string;
  content?: string | Uint8Array;
  type?: 'file' | 'directory' | 'symlink' | 'link' | 'fifo' | 'character-device' | 'block-device' | 'contiguous-file';
  mode?: number;
  linkname?: string;
  uid?: number;
  gid?: number;
  pax?: Record<string, string>;
  mtime?: Date;
}

/** Packs entries, which may be hostile, as a usual program packs a tar. */
export async function packTar(entries: TarEntry[]): Promise<Buffer> {
  const tar = pack();
  for (const { content = '', ...header } of entries) {
    const is_file = header.type === undefined || header.type.endsWith('file');
    if (is_file) tar.entry(header, content);
    else tar.entry(header);
  }
  tar.finalize();
  const pieces: Uint8Array[] = [];
  for await (const piece of tar) if (piece instanceof Uint8Array) pieces.push(piece);
  return Buffer.concat(pieces);
}

interface RawEntry {
  name: string;
  /** The encoding of the name; by default UTF-8. */
  encoding?: BufferEncoding;
  content?: string | Uint8Array;
  /** The letter of its type. */
  type?: string;
  /** The size in the header; by default that of the content. */
  size?: number;
  mode?: string;
  linkname?: string;
  prefix?: string;
  /** What stands behind it in a header. */
  magic?: string;
  /** Added to the right one. */
  checksum_error?: number;
}

/** Builds one unusual entry: header and content, padded to whole blocks. */
export function rawEntry(entry: RawEntry): Buffer {
  const { name, content = '', type = '0', mode = '0000644', linkname = '', prefix = '', magic = 'ustar\x0000' } = entry;
  const bytes = Buffer.from(content);
  const header = Buffer.alloc(512);
  header.write(name, 0, 100, entry.encoding ?? 'utf8');
  header.write(mode, 100);
  header.write('0000000', 108);
  header.write('0000000', 116);
  header.write((entry.size ?? bytes.length).toString(8).padStart(11, '0'), 124);
  header.write('00000000000', 136);
  header.write(type, 156);
  header.write(linkname, 157, 100);
  header.write(magic, 257);
  header.write(prefix, 345, 155);
  header.fill(' ', 148, 156);
  const checksum = header.reduce((sum, byte) => sum + byte, 0) + (entry.checksum_error ?? 0);
  header.write(`${checksum.toString(8).padStart(6, '0')}\0 `, 148);
  return Buffer.concat([header, bytes, Buffer.alloc(-bytes.length & 511)]);
}

/** The end of a tar. */
export const TAR_END = Buffer.alloc(1_024);

/** Returns a record of a PAX header, which begins with its own length in decimal digits. */
export function paxRecord(key: string, value: string): string {
  const rest = ` ${key}=${value}\n`;
  let length = Buffer.byteLength(rest);
  while (Buffer.byteLength(`${length}${rest}`) !== length) length += 1;
  return `${length}${rest}`;
}

/** Returns all entries below a directory by name, with type and mode like `drwxr-xr-x`. Follows no links. */
export async function listTree(directory: string): Promise<Record<string, string>> {
  const paths = (await listPaths(directory)).sort();
  const described = paths.map(async (path) => [relative(directory, path), describe(await lstat(path))] as const);
  return Object.fromEntries(await Promise.all(described));
}

/** The paths below a directory. The recursive `readdir` of Bun would enter folders through links. */
async function listPaths(directory: string): Promise<string[]> {
  const entries = await readdir(directory, { withFileTypes: true });
  const below = entries.map(async (entry) => {
    const path = join(directory, entry.name);
    return entry.isDirectory() ? [path, ...(await listPaths(path))] : [path];
  });
  return (await Promise.all(below)).flat();
}

function describe(stats: Awaited<ReturnType<typeof lstat>>): string {
  const type = stats.isFile() ? 'file' : stats.isDirectory() ? 'folder' : 'other';
  return `${type} ${(Number(stats.mode) & 0o7777).toString(8)}`;
}
