import { createReadStream, createWriteStream } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import { createZstdCompress } from 'node:zlib';
import { type Pack, pack } from 'tar-stream';
import { Failure } from '../../terminal/failure.ts';
import type { ProjectFile } from './files.ts';
import type { PackageContent } from './package.ts';
import { writeContent } from './temporary-content.ts';

/** The files of a directory as one tar, which is never in memory as a whole. */
export interface Archive {
  files: ProjectFile[];
  command: string[];
}

const HAS_CHANGED = 'A file of the server changed while it was packed. Try again.';

const startDigest = (how: object) => new Bun.CryptoHasher('sha256').update(JSON.stringify(how));

/** Returns a digest of the files and of how they are run. */
export async function digestArchive(archive: Archive, how: object): Promise<string> {
  const hasher = startDigest(how);
  await streamArchive(archive, async (tar) => {
    for await (const bytes of tar) if (bytes instanceof Uint8Array) hasher.update(bytes);
  });
  return hasher.digest('hex');
}

/**
 * Writes the compressed tar to a temporary file. Throws Failure if its digest differs from the earlier one, because a file
 * was changed: the service knows the build by its digest.
 */
export async function writeArchive(
  archive: Archive,
  how: object,
  { digest, stopping }: { digest: string; stopping: AbortSignal | undefined },
): Promise<PackageContent> {
  const hasher = startDigest(how);
  async function* hash(tar: AsyncIterable<Uint8Array>) {
    for await (const bytes of tar) {
      hasher.update(bytes);
      yield bytes;
    }
  }
  return await writeContent('server.tar.zst', async (file) => {
    await streamArchive(archive, (tar) =>
      pipeline(tar, hash, createZstdCompress(), createWriteStream(file), { signal: stopping }),
    );
    if (hasher.digest('hex') !== digest) throw new Failure(HAS_CHANGED);
  });
}

/** Passes the tar to a reader. Throws the error of the reader, which also gets that of a file that cannot be read. */
async function streamArchive(archive: Archive, read: (tar: Pack) => Promise<void>): Promise<void> {
  const tar = pack();
  const [reading] = await Promise.allSettled([read(tar), addFiles(tar, archive)]);
  if (reading.status === 'fulfilled') return;
  const has_changed = reading.reason instanceof Error && reading.reason.message === 'Size mismatch';
  throw has_changed ? new Failure(HAS_CHANGED) : reading.reason;
}

async function addFiles(tar: Pack, { files, command }: Archive): Promise<void> {
  try {
    for (const { path: name, file, bytes: size, is_executable } of files) {
      // A program that was exported on Windows is not executable.
      const runs = is_executable || name === command[0]?.replace(/^\.\//, '');
      const entry = tar.entry({ name, size, mode: runs ? 0o755 : 0o644, mtime: new Date(0) });
      await pipeline(createReadStream(file), entry);
    }
    tar.finalize();
  } catch (error) {
    tar.destroy(error instanceof Error ? error : new Error(String(error)));
  }
}
