import { open } from 'node:fs/promises';
import { join } from 'node:path';
import type { Static, TSchema } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { invalid, quote } from './invalid-build.ts';
import { asBytes, type TarEntry } from './tar-entry.ts';

/** The largest JSON file that is read into memory. */
export const JSON_BYTES_MAX = 1024 ** 2;
/** Older programs write a layer that occurs twice as a link to the first. */
const LINKS_MAX = 8;
const BLOB_NAME = /^blobs\/sha256\/(?<sha256>[0-9a-f]{64})$/;

interface StoredFile {
  path: string;
  bytes: number;
  sha256: string;
}

/**
 * The files of a tar, kept on disk under numbers until it is known how they belong together. A name in the tar is only a
 * name: no path of this machine is made of it.
 */
export class TarFiles {
  readonly #files = new Map<string, StoredFile | { link: string }>();
  #stored = 0;

  constructor(private readonly directory: string) {}

  /** Stores an entry if it is a file or a link. A later entry of the same name replaces it. */
  async add(entry: TarEntry): Promise<void> {
    const { name, type } = entry.header;
    const linkname = entry.header.linkname ?? '';
    const key = keyOf(name);
    if (type === 'symlink') this.#files.set(key, { link: keyOf(`${key}/../${linkname}`) });
    else if (type === 'link') this.#files.set(key, { link: keyOf(linkname) });
    else if (type === 'file' || type === 'contiguous-file') this.#files.set(key, await this.#store(entry));
  }

  has(name: string): boolean {
    return this.#find(name) !== undefined;
  }

  /** Returns the path of a file on disk. Throws if it is missing, or if its name contains another digest. */
  get(name: string): string {
    const file = this.#find(name);
    if (!file) throw invalid(`${quote(name)} is missing in it`);
    const digest = BLOB_NAME.exec(keyOf(name))?.groups?.sha256;
    if (digest !== undefined && digest !== file.sha256) throw invalid(`the digest of ${quote(name)} is wrong`);
    return file.path;
  }

  /** Returns the SHA-256 of a file in hexadecimal. */
  digestOf(name: string): string | undefined {
    return this.#find(name)?.sha256;
  }

  /** Reads a JSON file of a shape. */
  async readJson<Shape extends TSchema>(name: string, shape: Shape): Promise<Static<Shape>> {
    const path = this.get(name);
    if ((this.#find(name)?.bytes ?? 0) > JSON_BYTES_MAX) throw invalid(`${quote(name)} is too large`);
    return parseJson(await Bun.file(path).text(), name, shape);
  }

  #find(name: string): StoredFile | undefined {
    let file = this.#files.get(keyOf(name));
    for (let links = 0; links < LINKS_MAX; links += 1) {
      if (!file || !('link' in file)) break;
      file = this.#files.get(file.link);
    }
    return file && 'path' in file ? file : undefined;
  }

  async #store(entry: TarEntry): Promise<StoredFile> {
    const path = join(this.directory, String(this.#stored));
    this.#stored += 1;
    const hasher = new Bun.CryptoHasher('sha256');
    let bytes = 0;
    const file = await open(path, 'w', 0o600);
    try {
      for await (const chunk of entry) {
        const content = asBytes(chunk);
        hasher.update(content);
        bytes += content.length;
        await file.writeFile(content);
      }
    } finally {
      await file.close();
    }
    return { path, bytes, sha256: hasher.digest('hex') };
  }
}

/** Parses JSON of the tar, and leaves out what its shape does not have. Throws BUILDS_BUILD_INVALID for another shape. */
export function parseJson<Shape extends TSchema>(text: string, name: string, shape: Shape): Static<Shape> {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch (error) {
    throw invalid(`${quote(name)} is not JSON`, error);
  }
  const problem = Value.Errors(shape, parsed).First();
  if (problem) throw invalid(`${quote(name)} has an unexpected content at ${quote(problem.path)}: ${problem.message}`);
  return Value.Decode(shape, Value.Clean(shape, parsed));
}

/** Returns a name in the tar without `.` and `..`. */
function keyOf(name: string): string {
  return join('/', name).replace(/\/+$/, '').slice(1);
}
