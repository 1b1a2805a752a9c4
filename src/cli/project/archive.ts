import { createReadStream, createWriteStream } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createZstdCompress } from 'node:zlib';
import { type Pack, pack } from 'tar-stream';
import { Failure } from '../failure.ts';
import type { ProjectFile } from './files.ts';
import type { PackageContent } from './package.ts';

/** The files of a directory as one tar, which is never in memory as a whole. */
export interface Archive {
  files: ProjectFile[];
  command: string[];
}

/** Returns a digest of the files and of how they are run. */
export async function digestArchive(archive: Archive, how: object): Promise<string> {
  const hasher = new Bun.CryptoHasher('sha256').update(JSON.stringify(how));
  await streamArchive(archive, async (tar) => {
    for await (const bytes of tar) if (bytes instanceof Uint8Array) hasher.update(bytes);
  });
  return hasher.digest('hex');
}

/** Writes the compressed tar to a temporary file. */
export async function writeArchive(archive: Archive, stopping: AbortSignal | undefined): Promise<PackageContent> {
  const directory = await mkdtemp(join(tmpdir(), 'muster-archive-'));
  const remove = () => rm(directory, { recursive: true, force: true });
  const file = join(directory, 'server.tar.zst');
  try {
    await streamArchive(archive, (tar) =>
      pipeline(tar, createZstdCompress(), createWriteStream(file), { signal: stopping }),
    );
  } catch (error) {
    await remove();
    throw error;
  }
  return { blob: Bun.file(file), [Symbol.asyncDispose]: remove };
}

/** Passes the tar to a reader. Throws the error of the reader, which also gets that of a file that cannot be read. */
async function streamArchive(archive: Archive, read: (tar: Pack) => Promise<void>): Promise<void> {
  const tar = pack();
  const [reading] = await Promise.allSettled([read(tar), addFiles(tar, archive)]);
  if (reading.status === 'fulfilled') return;
  const has_changed = reading.reason instanceof Error && reading.reason.message === 'Size mismatch';
  throw has_changed ? new Failure('A file of the server changed while it was packed. Try again.') : reading.reason;
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
