import { existsSync } from 'node:fs';
import { chmod, mkdir, readdir, rename, rmdir, utimes } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Clock } from '../../platform/clock.ts';
import type { Queries } from '../../platform/database/database.ts';
import { assert, ServiceError } from '../../platform/errors.ts';
import { SlotQueue } from '../../platform/limits/slot-queue.ts';
import { type DiskSpace, isShortOfSpace, UNLIMITED_SPACE } from '../../platform/system/disk-space.ts';
import { syncPath, syncTree } from '../../platform/system/durable.ts';
import { removeFolder } from '../../platform/system/folder-removal.ts';
import type { Uploads } from '../uploads/uploads.ts';
import { unpackArchive } from './archives/unpack.ts';
import { type BaseImage, removeBaseImages } from './containers/base-image.ts';
import { unpackContainedArchive } from './containers/contained-archive.ts';
import { unpackBundle, unpackImage } from './containers/container-builds.ts';
import { hashStream } from './hashed-stream.ts';
import { checkProgram } from './program.ts';
import { type Available, refuseUnavailableKind } from './rules.ts';
import * as store from './store.ts';
import type { BuildRow, StoredKind } from './tables.ts';
import { createUnusedBuilds, type RemovedBuild, type RemoveUnusedOptions } from './unused-builds.ts';

/** Suffix of the directory into which a build is being unpacked. */
const UNFINISHED = '.unfinished';
/**
 * Each may use 135 MB of memory for the window of a zstd stream, and as many file operations as the disk has. Only
 * requests that complete uploads and starts of servers wait here, and both have limits of their own.
 */
const UNPACKINGS = { at_once: 4, waiting_max: Number.POSITIVE_INFINITY };

/**
 * The modes of directories. Game servers run as other users and enter those of archives and scripts. Containers may
 * have files of any owner, and folders that anyone may write to. So only this user, which starts them, may enter their
 * directories.
 */
const MODES: Record<StoredKind, number> = {
  archive: 0o755,
  javascript: 0o755,
  docker_image: 0o700,
  oci_bundle: 0o700,
  contained_archive: 0o700,
};

export interface UnpackedBuildsDependencies {
  database: { queries: Queries };
  clock: Clock;
  uploads: Pick<Uploads, 'read' | 'contentId'>;
  /** The directory of unpacked builds on this machine. */
  directory: string;
  space?: DiskSpace;
  available: Available;
  base_image?: BaseImage | undefined;
}

/** Opens the unpacked builds of this machine. */
export function openUnpackedBuilds({
  database,
  clock,
  uploads,
  directory,
  space = UNLIMITED_SPACE,
  available,
  base_image,
}: UnpackedBuildsDependencies) {
  const unpacking = new Map<string, Promise<string>>();
  const slots = new SlotQueue(UNPACKINGS);
  const unused = createUnusedBuilds({ clock, space, directory, discard });
  let swept: Promise<void> | undefined;

  const folderOf = ({ build_id }: Pick<BuildRow, 'build_id'>) => join(directory, build_id);

  /** Returns the directory of a build's current content. Earlier content, or another base image, has another directory. */
  async function contentDirectoryOf(build: BuildRow): Promise<string> {
    const content_id = await uploads.contentId(build.upload_id, 0);
    const is_contained = build.kind === 'contained_archive' && base_image !== undefined;
    return join(folderOf(build), is_contained ? `${content_id}-${base_image.key}` : content_id);
  }

  /**
   * Unpacks a build once on this machine. Returns its directory, which exists only once it is complete, and the digest of
   * its file; undefined if it was unpacked before digests were recorded.
   */
  async function ensure(build: BuildRow): Promise<{ directory: string; sha256: string | undefined }> {
    const content_directory = await contentDirectoryOf(build);
    if (await unused.use(content_directory)) return { directory: content_directory, sha256: build.sha256 ?? undefined };
    const under_way =
      unpacking.get(content_directory) ??
      slots
        .run(build.game_id, () => unpack(build, content_directory))
        .finally(() => unpacking.delete(content_directory));
    unpacking.set(content_directory, under_way);
    try {
      const sha256 = await under_way;
      await unused.use(content_directory);
      return { directory: content_directory, sha256 };
    } catch (error) {
      if (isShortOfSpace(error)) unused.noteShortage();
      throw error;
    }
  }

  /**
   * Unpacks a build into an unfinished directory, and renames that once the files are complete and on disk. Returns the
   * digest of the build's file.
   */
  async function unpack(build: BuildRow, content_directory: string): Promise<string> {
    await sweepOnce();
    await space.assertRoom(0);
    const folder = folderOf(build);
    const unfinished = `${folder}.${crypto.randomUUID()}${UNFINISHED}`;
    await mkdir(unfinished, { mode: 0o700 });
    try {
      const sha256 = await writeContent(build, unfinished);
      // Refuses a mix of two files: the file was uploaded again while it was unpacked.
      if ((await contentDirectoryOf(build)) !== content_directory) throw new ServiceError('UPLOAD_BUSY', {});
      await recordDigest(build, sha256);
      await chmod(unfinished, MODES[build.kind]);
      await syncTree(unfinished);
      // Game servers may enter the folder but not list it. An existing folder keeps its mode, because servers may be running
      // in it.
      const is_new = (await mkdir(folder, { recursive: true })) !== undefined;
      if (is_new) await chmod(folder, 0o711);
      // Counts as used before it can be found, so that it is not removed as an old one.
      await utimes(unfinished, clock.now(), clock.now());
      await rename(unfinished, content_directory);
      await syncPath(folder);
      await syncPath(directory);
      return sha256;
    } catch (error) {
      await removeFolder(unfinished);
      throw error;
    }
  }

  /** Writes the files of a build, and returns the digest of the file that was uploaded. */
  async function writeContent(build: BuildRow, unfinished: string): Promise<string> {
    const file = hashStream(await uploads.read(build.upload_id, 0));
    try {
      const options = { takeRoom: space.createMeter(), command: build.command, image_tag: build.image_tag };
      switch (build.kind) {
        case 'archive':
          await unpackArchive(file.stream, unfinished, options);
          await checkProgram(unfinished, build.command);
          break;
        case 'javascript':
          await Bun.write(join(unfinished, build.file_name), new Response(file.stream));
          break;
        case 'docker_image':
          await unpackImage(file.stream, unfinished, options);
          break;
        case 'oci_bundle':
          await unpackBundle(file.stream, unfinished, options);
          break;
        case 'contained_archive':
          refuseUnavailableKind(build.kind, available);
          assert(base_image, 'an archive in a container is available with a base image only');
          await unpackContainedArchive(file.stream, unfinished, { ...options, base_image });
          break;
      }
      return await file.digest();
    } catch (error) {
      await file.close();
      throw error;
    }
  }

  /** Records the digest of a build's file. The file of a complete build never changes, so neither does its digest. */
  async function recordDigest(build: BuildRow, sha256: string): Promise<void> {
    if (build.complete_ts && build.sha256 !== null && build.sha256 !== sha256) {
      const error = 'its stored file differs from the one that was uploaded; ask the operator to restore the storage';
      throw new ServiceError('BUILDS_BUILD_INVALID', { error });
    }
    if (build.sha256 !== sha256) await store.setDigest(database.queries, build.build_id, sha256);
  }

  /** Removes content. It is no longer found once its directory has another name. */
  async function discard(content_directory: string): Promise<void> {
    const unfinished = `${dirname(content_directory)}.${crypto.randomUUID()}${UNFINISHED}`;
    await rename(content_directory, unfinished);
    await removeFolder(unfinished);
  }

  /** Sweeps before this process first unpacks or removes a build. */
  async function sweepOnce(): Promise<void> {
    swept ??= sweep().catch((error: unknown) => {
      swept = undefined;
      throw error;
    });
    await swept;
  }

  /**
   * Removes the unfinished directories that a killed process left, the folders without content, and base images of earlier
   * starts if this one has none. No other process uses this data directory.
   */
  async function sweep(): Promise<void> {
    if (!base_image) await removeBaseImages(directory);
    for (const entry of await readdir(directory, { withFileTypes: true })) {
      const path = join(directory, entry.name);
      if (entry.name.endsWith(UNFINISHED)) await removeFolder(path);
      else if (entry.isDirectory() && (await readdir(path)).length === 0) await rmdir(path);
    }
  }

  return {
    ensure,
    /** Returns whether any content of a build is on this machine. */
    async has(build_id: string): Promise<boolean> {
      const folder = folderOf({ build_id });
      return existsSync(folder) && (await readdir(folder)).length > 0;
    },
    /**
     * Removes the content that no server uses, as `RemoveUnusedOptions` says, and what a killed process left of builds that
     * it was unpacking.
     */
    async removeUnused(options: RemoveUnusedOptions): Promise<RemovedBuild[]> {
      await sweepOnce();
      return await unused.removeUnused(options);
    },
    setShortageListener: unused.setShortageListener,
    /** Removes directories of earlier content. Only for a build that is not complete, so no server runs from it. */
    async removeEarlier(build: BuildRow, current: string): Promise<void> {
      const folder = folderOf(build);
      const contents = (await readdir(folder)).map((name) => join(folder, name));
      await Promise.all(contents.filter((content) => content !== current).map((content) => removeFolder(content)));
    },
    /** Removes everything of a build that will never be complete. */
    remove: (build: BuildRow): Promise<void> => removeFolder(folderOf(build)),
  };
}
