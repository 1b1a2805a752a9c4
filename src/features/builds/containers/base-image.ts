import { existsSync } from 'node:fs';
import { mkdir, readdir, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { StartError } from '../../../platform/errors.ts';
import { syncTree } from '../../../platform/system/durable.ts';
import { InvalidBuild } from '../archives/invalid-build.ts';
import { unpackImage } from './container-builds.ts';

/** How the directory of a base image begins. It is beside those of unpacked builds, which begin with the id of a build. */
const PREFIX = 'base-image.';
const UNFINISHED = '.unfinished';
const KEY_CHARACTERS = 16;
/** An image of libraries names no program. It is never run: each archive has its own command. */
const COMMAND = ['/bin/sh'];

/** The image on which archives run in containers, unpacked on this machine. */
export interface BaseImage {
  /** Identifies the content of the image among those that this machine has had. */
  key: string;
  /** Has `rootfs/` and `config.json`, like any unpacked image. */
  directory: string;
}

export interface BaseImageOptions {
  /** The path of the image, as `docker save` writes it. */
  file: string;
  /** The directory of unpacked builds. Each contained archive has hard links to the files of the image. */
  directory: string;
}

/** Unpacks the base image, unless an earlier start has done so. Throws StartError if there is no such image. */
export async function openBaseImage({ file, directory }: BaseImageOptions): Promise<BaseImage> {
  try {
    const key = await keyOf(file);
    const unpacked = join(directory, `${PREFIX}${key}`);
    if (!existsSync(unpacked)) await unpack(file, unpacked);
    await removeBaseImages(directory, { kept: `${PREFIX}${key}` });
    return { key, directory: unpacked };
  } catch (cause) {
    throw new StartError(describeFailure({ file, directory }, cause), { cause });
  }
}

function describeFailure({ file, directory }: BaseImageOptions, cause: unknown): string {
  const reason = cause instanceof InvalidBuild ? cause.reason : cause instanceof Error ? cause.message : cause;
  const is_of_file =
    cause instanceof InvalidBuild || (cause instanceof Error && 'path' in cause && cause.path === file);
  return is_of_file
    ? `MUSTER_CONTAINER_BASE is "${file}", which is not a usable image: ${reason}. Name a file that "docker save" wrote.`
    : `The image of MUSTER_CONTAINER_BASE cannot be unpacked to ${directory}: ${reason}.`;
}

async function unpack(file: string, unpacked: string): Promise<void> {
  const unfinished = `${unpacked}${UNFINISHED}`;
  await rm(unfinished, { recursive: true, force: true });
  await mkdir(unfinished, { mode: 0o700 });
  await unpackImage(Bun.file(file).stream(), unfinished, { command: COMMAND, image_tag: null });
  await syncTree(unfinished);
  await rename(unfinished, unpacked);
}

/**
 * Removes base images from the directory of unpacked builds, except for one to keep. Builds on them have hard links of
 * their own. Renames an image before it removes the files, so that a partly removed one is never used.
 */
export async function removeBaseImages(directory: string, { kept }: { kept?: string } = {}): Promise<void> {
  for (const name of await readdir(directory)) {
    if (!name.startsWith(PREFIX) || name === kept) continue;
    const path = join(directory, name);
    const unfinished = name.endsWith(UNFINISHED) ? path : `${path}${UNFINISHED}`;
    if (unfinished !== path) await rename(path, unfinished);
    await rm(unfinished, { recursive: true });
  }
}

/** A file that was replaced or written has another key. */
async function keyOf(file: string): Promise<string> {
  const { ino, size, mtimeMs } = await stat(file);
  return new Bun.CryptoHasher('sha256').update(`${ino} ${size} ${mtimeMs}`).digest('hex').slice(0, KEY_CHARACTERS);
}
