import { lstat, mkdir, readlink, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { hasErrorCode } from '../../../platform/system/system-errors.ts';
import { invalid, quote } from '../archives/invalid-build.ts';
import { checkEntryCount, type UnpackCount, type UnpackLimits } from '../archives/tar-reader.ts';

/** As many links as Linux follows in one path. */
const LINKS_MAX = 40;
const NAME_BYTES_MAX = 255;

/** A path inside a container, as its names from the root. In a real path, only the last name may be that of a link. */
export type ContainerPath = readonly string[];

interface ContainerFilesOptions {
  /** The directory of this machine that is the root of the container. No other process uses it. */
  directory: string;
  limits: UnpackLimits;
  count: UnpackCount;
}

/**
 * The files of a container that is a directory of this machine. A link may lead anywhere inside the container, but
 * the kernel never follows one: each component of a path is checked without following it, and the target of a link is
 * resolved from the container's root.
 */
export class ContainerFiles {
  /** The real paths known to be folders. */
  readonly #folders = new Set<string>();

  constructor(private readonly options: ContainerFilesOptions) {}

  /** Returns the path on this machine. */
  onDisk(real_path: ContainerPath): string {
    return join(this.options.directory, ...real_path);
  }

  /** Returns the status of what is at a path, without following a link; undefined if nothing is there. */
  async lstat(real_path: ContainerPath) {
    try {
      return await lstat(this.onDisk(real_path));
    } catch (error) {
      // A link may name a file that no file system could have.
      if (hasErrorCode(error, 'ENOENT') || hasErrorCode(error, 'ENAMETOOLONG')) return undefined;
      throw error;
    }
  }

  /** Removes what is at a path, if anything. */
  async remove(real_path: ContainerPath): Promise<void> {
    const stats = await this.lstat(real_path);
    if (!stats) return;
    if (stats.isDirectory()) this.#folders.clear();
    await rm(this.onDisk(real_path), { recursive: stats.isDirectory() });
  }

  /** Returns the names of an entry's path, without those that change nothing. Throws BUILDS_BUILD_INVALID. */
  parse(name: string): ContainerPath {
    const path = namesOf(name);
    // U+FFFD replaces bytes that are not UTF-8, so the file could not be found by its name.
    if (path.includes('..') || /[\p{Cc}\ufffd]/u.test(name)) {
      throw invalid(`${quote(name)} is not a plain path inside the image`);
    }
    this.checkLengths(path, name);
    return path;
  }

  /** Checks the lengths of a real path, which may be longer than the name of its entry if links lead there. */
  checkLengths(real_path: ContainerPath, name: string): void {
    const { depth, name_bytes } = this.options.limits;
    const is_long = real_path.some((segment) => Buffer.byteLength(segment) > NAME_BYTES_MAX);
    if (is_long || Buffer.byteLength(keyOf(real_path)) > name_bytes) {
      throw invalid(`the name ${quote(name)}… is too long`);
    }
    if (real_path.length > depth) throw invalid(`${quote(name)} is more than ${depth} folders deep`);
  }

  /** Returns the real path of a folder, found as the container would find it; undefined if there is none. */
  async findFolder(path: ContainerPath): Promise<ContainerPath | undefined> {
    return await this.#resolveFolder(path, async () => false);
  }

  /** Returns the real path of the folder of an entry, and creates what is missing of it. */
  async makeFolder(path: ContainerPath, name: string): Promise<ContainerPath> {
    const real_path = await this.#resolveFolder(path, async (missing) => {
      this.checkLengths(missing, name);
      this.#count(1);
      await mkdir(this.onDisk(missing), { mode: 0o755 });
      return true;
    });
    if (!real_path) throw invalid(`${quote(name)} needs a folder where the image has a file`);
    return real_path;
  }

  /** Returns the real path of a regular file, found as the container would find it; undefined if there is none. */
  async findFile(path: ContainerPath): Promise<ContainerPath | undefined> {
    let wanted = [...path];
    for (let links = 0; links <= LINKS_MAX; links += 1) {
      const folder = await this.findFolder(wanted.slice(0, -1));
      const name = wanted.at(-1);
      if (!folder || !name || name === '.' || name === '..') return undefined;
      const real_path = [...folder, name];
      const stats = await this.lstat(real_path);
      if (!stats?.isSymbolicLink()) return stats?.isFile() ? real_path : undefined;
      const target = await this.#followLink(real_path);
      wanted = [...(target.startsWith('/') ? [] : folder), ...target.split('/')];
    }
    return undefined;
  }

  /**
   * Returns the real path of a folder. Follows links as the container would: an absolute one begins at its root, and `..` at
   * the root stays there. Returns undefined if something on the way is neither a folder nor a link to one, or is missing
   * and `make` does not create it.
   */
  async #resolveFolder(
    path: ContainerPath,
    make: (missing: ContainerPath) => Promise<boolean>,
  ): Promise<ContainerPath | undefined> {
    let real_path: string[] = [];
    // In reverse, so that the next name is at the end.
    const left = namesOf(keyOf(path)).reverse();
    let links = 0;
    for (let name = left.pop(); name !== undefined; name = left.pop()) {
      if (name === '..') {
        real_path = real_path.slice(0, -1);
        continue;
      }
      const next = [...real_path, name];
      if (!this.#folders.has(keyOf(next))) {
        const stats = await this.lstat(next);
        if (stats?.isSymbolicLink()) {
          links += 1;
          if (links > LINKS_MAX) throw invalid(`${quote(keyOf(path))} goes through more than ${LINKS_MAX} links`);
          const target = await this.#followLink(next);
          if (target.startsWith('/')) real_path = [];
          left.push(...namesOf(target).reverse());
          continue;
        }
        if (stats ? !stats.isDirectory() : !(await make(next))) return undefined;
        this.#folders.add(keyOf(next));
      }
      real_path = next;
    }
    return real_path;
  }

  /** Returns the target of a link. A longer one counts as several entries, each with as many names as an entry may have. */
  async #followLink(real_path: ContainerPath): Promise<string> {
    const target = await readlink(this.onDisk(real_path));
    this.#count(Math.max(1, Math.ceil(namesOf(target).length / this.options.limits.depth)));
    return target;
  }

  /** Counts a folder that is made, or a link that is followed, as entries, so that the work has a limit. */
  #count(entries: number): void {
    this.options.count.entries += entries;
    checkEntryCount(this.options.count, this.options.limits);
  }
}

/** Returns the names of a path, without those that change nothing. */
function namesOf(path: string): string[] {
  return path.split('/').filter((name) => name !== '' && name !== '.');
}

/** Returns a path as text. */
export function keyOf(real_path: ContainerPath): string {
  return real_path.join('/');
}
