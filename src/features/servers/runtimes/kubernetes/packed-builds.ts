import { createReadStream } from 'node:fs';
import { lstat, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { LRUCache } from 'lru-cache';
import { pack } from 'tar-stream';
import { streamOf } from '../../../../platform/objects/objects.ts';

const FACTS_MAX = 1_000;
const EPOCH = new Date(0);
/** Block of the file systems of nodes. */
const BLOCK_BYTES = 4_096;

interface BuildFacts {
  /** The digest of the tar, in hexadecimal. */
  sha256: string;
  /** What the files take on the disk of a node. */
  bytes: number;
}

/** The files of a build, as pods fetch them. */
export interface PackedBuilds {
  /** Reads a build once. Fails if the directory cannot be read. */
  facts(directory: string): Promise<BuildFacts>;
  /** Returns the tar. The same files make the same bytes. */
  open(directory: string): ReadableStream<Uint8Array>;
}

/** Creates the packing of unpacked builds, which never change. A tar is made for each pod, and kept nowhere. */
export function createPackedBuilds(): PackedBuilds {
  const known = new LRUCache<string, Promise<BuildFacts>>({ max: FACTS_MAX });

  async function readFacts(directory: string): Promise<BuildFacts> {
    const hasher = new Bun.CryptoHasher('sha256');
    let blocks = 0;
    const onEntry = (size: number) => {
      blocks += Math.ceil(size / BLOCK_BYTES);
    };
    for await (const bytes of packFolder(directory, onEntry)) hasher.update(bytes);
    return { sha256: hasher.digest('hex'), bytes: blocks * BLOCK_BYTES };
  }

  return {
    async facts(directory) {
      const facts = known.get(directory) ?? readFacts(directory);
      known.set(directory, facts);
      try {
        return await facts;
      } catch (cause) {
        known.delete(directory);
        throw cause;
      }
    },
    open: (directory) => streamOf(packFolder(directory)),
  };
}

/** Yields the tar of a folder. Reports the size of each file, and of the folders as one block. */
async function* packFolder(directory: string, onEntry = (_size: number) => {}): AsyncGenerator<Uint8Array, void> {
  const tar = pack();
  onEntry(BLOCK_BYTES);
  const writing = addFolder({ tar, directory, onEntry }, '').then(
    () => tar.finalize(),
    (cause: Error) => tar.destroy(cause),
  );
  try {
    for await (const bytes of tar as AsyncIterable<Uint8Array>) yield bytes;
    await writing;
  } finally {
    // The reader went away.
    tar.destroy();
  }
}

interface Packing {
  tar: ReturnType<typeof pack>;
  directory: string;
  onEntry(size: number): void;
}

async function addFolder(packing: Packing, inside: string): Promise<void> {
  const { tar, directory, onEntry } = packing;
  for (const name of (await readdir(join(directory, inside))).toSorted()) {
    const path = inside === '' ? name : `${inside}/${name}`;
    const file = join(directory, path);
    const { mode, size, isDirectory } = await inspect(file);
    onEntry(isDirectory ? BLOCK_BYTES : size);
    if (isDirectory) {
      tar.entry({ name: `${path}/`, type: 'directory', mode: 0o755, mtime: EPOCH });
      await addFolder(packing, path);
      continue;
    }
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const header = { name: path, size, mode: mode & 0o111 ? 0o755 : 0o644, mtime: EPOCH };
    const entry = tar.entry(header, (error) => (error ? reject(error) : resolve()));
    createReadStream(file).on('error', reject).pipe(entry);
    await promise;
  }
}

async function inspect(file: string): Promise<{ mode: number; size: number; isDirectory: boolean }> {
  const stats = await lstat(file);
  // Archives and scripts are unpacked without links.
  if (!stats.isFile() && !stats.isDirectory()) throw new Error('the build has a file that is no plain file');
  return { mode: stats.mode, size: stats.size, isDirectory: stats.isDirectory() };
}
