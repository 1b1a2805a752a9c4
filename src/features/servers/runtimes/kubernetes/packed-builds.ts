import { lstat } from 'node:fs/promises';
import { LRUCache } from 'lru-cache';
import type { UnpackedBuild } from '../../../builds/builds.ts';
import { BuildReads, type Pack } from './build-reads.ts';
import { packFolder } from './folder-tar.ts';

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

/** Where the files of a build are, and the game in whose turns they are read. */
export type PackedFrom = Pick<UnpackedBuild, 'directory' | 'game_id'>;

/** The files of a build, as pods fetch them. */
export interface PackedBuilds {
  /** Returns the facts of a build, which is read once for them. Fails if the directory cannot be read. */
  facts(build: PackedFrom): Promise<BuildFacts>;
  /** Returns the function that packs the tar. The same files make the same bytes. */
  packOf(directory: string): Pack;
}

/** Creates the packing of unpacked builds, which never change. A tar is made for each pod, and kept nowhere. */
export function createPackedBuilds(reads = new BuildReads()): PackedBuilds {
  const known = new LRUCache<string, Promise<BuildFacts>>({ max: FACTS_MAX });

  async function readFacts({ directory, game_id }: PackedFrom): Promise<BuildFacts> {
    let blocks = 0;
    const onEntry = (size: number) => {
      blocks += Math.ceil(size / BLOCK_BYTES);
    };
    const { sha256 } = await reads.hash(game_id, () => packBuild(directory, onEntry));
    return { sha256, bytes: blocks * BLOCK_BYTES };
  }

  return {
    async facts(build) {
      const { directory } = build;
      const facts = known.get(directory) ?? readFacts(build);
      known.set(directory, facts);
      try {
        return await facts;
      } catch (cause) {
        known.delete(directory);
        throw cause;
      }
    },
    packOf: (directory) => () => packBuild(directory),
  };
}

/** Yields the tar of a build. Reports the size of each file, and of the folders as one block. */
async function* packBuild(directory: string, onEntry = (_size: number) => {}): AsyncGenerator<Uint8Array, void> {
  onEntry(BLOCK_BYTES);
  yield* packFolder({
    directory,
    async describe(file) {
      const { mode, size, is_directory } = await inspect(file);
      onEntry(is_directory ? BLOCK_BYTES : size);
      if (is_directory) return { type: 'directory', mode: 0o755, mtime: EPOCH };
      return { type: 'file', size, mode: mode & 0o111 ? 0o755 : 0o644, mtime: EPOCH };
    },
  });
}

async function inspect(file: string): Promise<{ mode: number; size: number; is_directory: boolean }> {
  const stats = await lstat(file);
  // Archives and scripts are unpacked without links.
  if (!stats.isFile() && !stats.isDirectory())
    throw new Error('the build has an entry that is neither a file nor a folder');
  return { mode: stats.mode, size: stats.size, is_directory: stats.isDirectory() };
}
