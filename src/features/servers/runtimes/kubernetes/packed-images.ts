import type { Stats } from 'node:fs';
import { lstat, readlink } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { LRUCache } from 'lru-cache';
import { IMAGE_ARCHITECTURE } from '../../../../platform/system/architecture.ts';
import { rootOf } from '../container/image.ts';
import { BuildReads, type Pack } from './build-reads.ts';
import { copyExecutable } from './executable-copy.ts';
import { type EntryHeader, packFolder } from './folder-tar.ts';
import type { PackedFrom } from './packed-builds.ts';
import { USER_ID } from './pod-manifest.ts';
import { POD_EXECUTABLE } from './pod-names.ts';

const IMAGES_MAX = 1_000;
/** Takes the place of a game's id where work is done for no game: all images share Muster's executable. */
const OF_NO_GAME = '';
const EPOCH = new Date(0);
const OWN_FOLDER = basename(POD_EXECUTABLE.folder);
/** Begins the names by which a layer removes what layers below it have. */
const WHITEOUT = '.wh.';
const TYPES = {
  manifest: 'application/vnd.oci.image.manifest.v1+json',
  config: 'application/vnd.oci.image.config.v1+json',
  layer: 'application/vnd.oci.image.layer.v1.tar',
} as const;

/** A part of an image, which its digest names. */
export interface ImageBlob {
  /** With `sha256:` before it. */
  digest: string;
  type: string;
  bytes: number;
  /** Its text, or the function that packs it. */
  content: string | Pack;
}

/** An image as nodes pull it. */
export interface PackedImage {
  manifest: ImageBlob;
  /** The configuration and the layers. */
  blobs: ImageBlob[];
}

interface PackedImagesOptions {
  /** Muster's executable. */
  executable: string;
  /** The directory for the copy of it that images have. */
  directory: string;
  reads?: BuildReads | undefined;
}

/**
 * Packs images and bundles for the nodes of a cluster. Each image has two layers: Muster's executable, which all images
 * share, and the files of the build as Muster unpacked and checked them. It has no configuration of its own, because the
 * pod says how its program runs. All files belong to the user of the pods, so that they may read what the image's own
 * user may.
 */
export class PackedImages {
  readonly #images = new LRUCache<string, Promise<PackedImage>>({ max: IMAGES_MAX });
  readonly #reads: BuildReads;
  #program: Promise<ImageBlob> | undefined;

  constructor(private readonly options: PackedImagesOptions) {
    this.#reads = options.reads ?? new BuildReads();
  }

  /** Packs a build. The same files make the same bytes. */
  async pack(build: PackedFrom): Promise<PackedImage> {
    const { directory } = build;
    const packing = this.#images.get(directory) ?? this.#pack(build);
    this.#images.set(directory, packing);
    try {
      return await packing;
    } catch (cause) {
      this.#images.delete(directory);
      throw cause;
    }
  }

  async #pack({ directory, game_id }: PackedFrom): Promise<PackedImage> {
    this.#program ??= this.#packProgram().catch((cause: unknown) => {
      this.#program = undefined;
      throw cause;
    });
    const layers = [await this.#program, await this.#describeLayer(game_id, () => packBuild(rootOf({ directory })))];
    const rootfs = { type: 'layers', diff_ids: layers.map(({ digest }) => digest) };
    const config = describeJson(TYPES.config, { architecture: IMAGE_ARCHITECTURE, os: 'linux', config: {}, rootfs });
    const referTo = ({ type, digest, bytes }: ImageBlob) => ({ mediaType: type, digest, size: bytes });
    const manifest = describeJson(TYPES.manifest, {
      schemaVersion: 2,
      mediaType: TYPES.manifest,
      config: referTo(config),
      layers: layers.map(referTo),
    });
    return { manifest, blobs: [config, ...layers] };
  }

  /** The copy stays as it is when the executable is replaced by another release. */
  async #packProgram(): Promise<ImageBlob> {
    const { executable, directory } = this.options;
    await copyExecutable({ executable, directory: join(directory, OWN_FOLDER) });
    return await this.#describeLayer(OF_NO_GAME, () => packFolder({ directory, describe: describeProgramFile }));
  }

  async #describeLayer(game_id: string, pack: Pack): Promise<ImageBlob> {
    const { sha256, bytes } = await this.#reads.hash(game_id, pack);
    return { type: TYPES.layer, digest: `sha256:${sha256}`, bytes, content: pack };
  }
}

function describeJson(type: string, value: object): ImageBlob {
  const text = JSON.stringify(value);
  const digest = `sha256:${new Bun.CryptoHasher('sha256').update(text).digest('hex')}`;
  return { type, digest, bytes: Buffer.byteLength(text), content: text };
}

async function describeProgramFile(file: string): Promise<EntryHeader> {
  const stats = await lstat(file);
  const common = { mode: 0o755, mtime: EPOCH };
  return stats.isDirectory() ? { type: 'directory', ...common } : { type: 'file', size: stats.size, ...common };
}

function packBuild(directory: string): AsyncGenerator<Uint8Array, void> {
  /** The first path of each file with several hard links, by its device and inode. */
  const linked = new Map<string, string>();
  return packFolder({
    directory,
    async describe(file, path) {
      // The layer below has a folder with the first name. A node would take the second one for a whiteout, and hide
      // another file.
      if (path === OWN_FOLDER || basename(path).startsWith(WHITEOUT)) return undefined;
      const stats = await lstat(file);
      if (stats.isFile() && stats.nlink > 1) {
        const known = linked.get(`${stats.dev}:${stats.ino}`);
        // Nodes give the file the owner and the mode of each of its links.
        if (known !== undefined)
          return { ...(await describeFile(file, stats)), type: 'link', linkname: known, size: 0 };
        linked.set(`${stats.dev}:${stats.ino}`, path);
      }
      return await describeFile(file, stats);
    },
  });
}

async function describeFile(file: string, stats: Stats): Promise<EntryHeader> {
  const { size, mtime } = stats;
  const mode = modeInImage(stats);
  const owner = { uid: USER_ID, gid: USER_ID };
  if (stats.isDirectory()) return { type: 'directory', mode: mode | 0o700, mtime: EPOCH, ...owner };
  if (stats.isSymbolicLink())
    return { type: 'symlink', linkname: await readlink(file), mode: 0o777, mtime: EPOCH, ...owner };
  if (!stats.isFile()) throw new Error('the build has an entry that is neither a file, a folder nor a link');
  return { type: 'file', size, mode: mode | 0o600, mtime, ...owner };
}

/**
 * Returns a mode in which the group has the rights of others. Nodes add rights of the group to the files of a volume
 * (fsGroup), and all processes that share a cluster must make the same image.
 */
function modeInImage({ mode }: Stats): number {
  const of_others = mode & 0o007;
  return (mode & 0o1707) | (of_others << 3);
}
