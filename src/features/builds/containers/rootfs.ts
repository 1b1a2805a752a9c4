import { constants } from 'node:fs';
import { chmod, lchown, link, mkdir, open, readdir, symlink } from 'node:fs/promises';
import type { Header } from 'tar-stream';
import { hasErrorCode } from '../../../platform/system/system-errors.ts';
import { invalid, quote } from '../archives/invalid-build.ts';
import { asBytes, changedAt, isFolder, refuseSparse, type TarEntry } from '../archives/tar-entry.ts';
import type { UnpackCount, UnpackLimits } from '../archives/tar-reader.ts';
import { ContainerFiles, type ContainerPath, keyOf } from './container-files.ts';

const OWNER_MAX = 0xff_ff_ff_fe;
const TEXT_BYTES_MAX = 1024 ** 2;

/** Names by which a layer removes what layers below it have: one entry, or all entries of a folder. */
const WHITEOUT = '.wh.';
const OPAQUE = '.wh..wh..opq';
/** Files that AUFS, which introduced whiteouts, kept for itself. */
const WHITEOUT_NOTE = '.wh..wh.';

interface RootfsOptions {
  limits: UnpackLimits;
  count: UnpackCount;
  /** Whether this process may give files to other users. */
  is_root: boolean;
}

/**
 * The file system of a container, while it is unpacked to a directory of this machine that no other process uses. Its
 * entries may be hostile: `ContainerFiles` says how links are kept inside.
 *
 * Owners and modes are those of the image if this process is root, otherwise all files are its own. The bits setuid and
 * setgid are always removed: in a container without new privileges they have no effect, and on this machine any user who
 * reaches the file could run it as its owner. Devices, pipes and extended attributes are left out.
 */
export class Rootfs {
  readonly #files: ContainerFiles;
  /** The real paths that the current layer has written, and the folders above them. */
  #own = new Set<string>();
  /** The real paths to which a whiteout of the current layer has been applied. */
  #hidden = new Set<string>();

  constructor(
    private readonly directory: string,
    private readonly options: RootfsOptions,
  ) {
    this.#files = new ContainerFiles({ directory, ...options });
  }

  /** Begins a layer, which may replace or hide what the layers before it have written. */
  beginLayer(): void {
    this.#own = new Set();
    this.#hidden = new Set();
  }

  /** Applies an entry of a layer, with its whiteouts. */
  async applyLayerEntry(entry: TarEntry): Promise<void> {
    const { name } = entry.header;
    const path = this.#files.parse(name);
    const last = path.at(-1) ?? '';
    if (path.slice(0, -1).some((segment) => segment.startsWith(WHITEOUT))) return;
    if (!last.startsWith(WHITEOUT)) return await this.#write(entry, path, this.#linkPathOf(entry.header));
    const hidden = last.slice(WHITEOUT.length);
    if (['', '.', '..'].includes(hidden)) throw invalid(`${quote(name)} is a whiteout that names no file`);
    const folder = await this.#files.findFolder(path.slice(0, -1));
    if (!folder) return;
    if (last === OPAQUE) await this.#hideEntries(folder);
    else if (!last.startsWith(WHITEOUT_NOTE)) await this.#hide([...folder, hidden]);
  }

  /** Writes an entry below a folder of its tar, which becomes the root. Entries outside of it are left out. */
  async writeBelow(root_name: string, entry: TarEntry): Promise<void> {
    const [root, ...path] = this.#files.parse(entry.header.name);
    if (root !== root_name) return;
    const [link_root, ...link_path] = this.#linkPathOf(entry.header);
    if (entry.header.type === 'link' && link_root !== root_name) {
      throw invalid(`${quote(entry.header.name)} is a hard link to a file outside of ${root_name}/`);
    }
    await this.#write(entry, path, link_path);
  }

  /** Returns the text of a file, found as a program in the container would find it; undefined if there is none. */
  async readText(path: string): Promise<string | undefined> {
    const real_path = await this.#files.findFile(path.split('/'));
    if (!real_path) return undefined;
    const file = await open(this.#files.onDisk(real_path), constants.O_RDONLY | constants.O_NOFOLLOW);
    try {
      const stats = await file.stat();
      if (stats.size > TEXT_BYTES_MAX) throw invalid(`its ${path} has more than ${TEXT_BYTES_MAX} bytes`);
      return await file.readFile('utf8');
    } finally {
      await file.close();
    }
  }

  async #write(entry: TarEntry, path: ContainerPath, link_path: ContainerPath): Promise<void> {
    const { header } = entry;
    checkType(header);
    const name = path.at(-1);
    if (name === undefined) {
      if (!isFolder(header)) throw invalid('the root of its files is not a folder');
      return await this.#setOwnerAndMode(this.directory, header, 0o700);
    }
    const real_path = [...(await this.#files.makeFolder(path.slice(0, -1), header.name)), name];
    this.#files.checkLengths(real_path, header.name);
    switch (isFolder(header) ? 'directory' : header.type) {
      case 'directory':
        await this.#writeFolder(real_path, header);
        break;
      case 'symlink':
        await this.#files.remove(real_path);
        await symlink(checkedTarget(header), this.#files.onDisk(real_path));
        await this.#setOwner(this.#files.onDisk(real_path), header);
        break;
      case 'link':
        await this.#writeHardLink(real_path, link_path, header);
        break;
      case 'file':
      case 'contiguous-file':
        await this.#files.remove(real_path);
        await this.#writeFile(real_path, entry);
        break;
      default:
        await this.#files.remove(real_path);
    }
    this.#markOwn(real_path);
  }

  async #writeFolder(real_path: ContainerPath, header: Header): Promise<void> {
    const path = this.#files.onDisk(real_path);
    const stats = await this.#files.lstat(real_path);
    if (!stats?.isDirectory()) {
      await this.#files.remove(real_path);
      await mkdir(path, { mode: 0o700 });
    }
    await this.#setOwnerAndMode(path, header, 0o700);
  }

  async #writeFile(real_path: ContainerPath, entry: TarEntry): Promise<void> {
    const { header } = entry;
    const file = await open(this.#files.onDisk(real_path), 'wx', 0o600);
    try {
      for await (const chunk of entry) {
        await file.writeFile(asBytes(chunk));
      }
      if (this.options.is_root) await file.chown(...ownerOf(header));
      await file.chmod(modeOf(header, this.options.is_root ? 0 : 0o600));
      await file.utimes(changedAt(header), changedAt(header));
    } finally {
      await file.close();
    }
  }

  async #writeHardLink(real_path: ContainerPath, link_path: ContainerPath, header: Header): Promise<void> {
    const { name } = header;
    const linkname = header.linkname ?? '';
    const folder = await this.#files.findFolder(link_path.slice(0, -1));
    const target = folder && link_path.length > 0 ? [...folder, ...link_path.slice(-1)] : undefined;
    const stats = target && (await this.#files.lstat(target));
    if (!target || !stats?.isFile()) {
      throw invalid(`${quote(name)} is a hard link to ${quote(linkname)}, which is not a file in the image`);
    }
    if (keyOf(target) === keyOf(real_path)) return;
    await this.#files.remove(real_path);
    try {
      await link(this.#files.onDisk(target), this.#files.onDisk(real_path));
    } catch (error) {
      if (hasErrorCode(error, 'ENOENT')) {
        throw invalid(`${quote(name)} is a hard link to a file in the folder that it replaces`, error);
      }
      if (hasErrorCode(error, 'EMLINK')) throw invalid(`${quote(linkname)} has too many hard links`, error);
      throw error;
    }
  }

  /** Returns the path of the file that a hard link names. The target of a symbolic link is any text. */
  #linkPathOf({ type, linkname }: Header): ContainerPath {
    return type === 'link' ? this.#files.parse(linkname ?? '') : [];
  }

  /** Hides the entries of a folder that layers below have written. */
  async #hideEntries(folder: ContainerPath): Promise<void> {
    const key = `${keyOf(folder)}/`;
    if (this.#hidden.has(key)) return;
    this.#hidden.add(key);
    for (const name of await readdir(this.#files.onDisk(folder))) await this.#hideLower([...folder, name]);
  }

  /** Hides what layers below have written at a path. */
  async #hide(real_path: ContainerPath): Promise<void> {
    if (this.#hidden.has(keyOf(real_path))) return;
    this.#hidden.add(keyOf(real_path));
    await this.#hideLower(real_path);
  }

  async #hideLower(real_path: ContainerPath): Promise<void> {
    if (!this.#own.has(keyOf(real_path))) return await this.#files.remove(real_path);
    if (!(await this.#files.lstat(real_path))?.isDirectory()) return;
    for (const name of await readdir(this.#files.onDisk(real_path))) await this.#hideLower([...real_path, name]);
  }

  #markOwn(real_path: ContainerPath): void {
    for (let length = real_path.length; length > 0; length -= 1) {
      const key = keyOf(real_path.slice(0, length));
      if (this.#own.has(key)) return;
      this.#own.add(key);
    }
  }

  async #setOwnerAndMode(path: string, header: Header, needed: number): Promise<void> {
    await this.#setOwner(path, header);
    await chmod(path, modeOf(header, this.options.is_root ? 0 : needed));
  }

  async #setOwner(path: string, header: Header): Promise<void> {
    if (this.options.is_root) await lchown(path, ...ownerOf(header));
  }
}

function checkType(header: Header): void {
  refuseSparse(header);
  const { name, type } = header;
  const known = ['file', 'contiguous-file', 'directory', 'symlink', 'link', 'fifo', 'character-device', 'block-device'];
  if (!known.includes(type ?? '')) throw invalid(`${quote(name)} is neither a file, a folder nor a link`);
}

function checkedTarget({ name, linkname: target }: Header): string {
  const linkname = target ?? '';
  if (linkname !== '' && !/[\0\ufffd]/.test(linkname)) return linkname;
  throw invalid(`${quote(name)} is a link whose target is empty or not UTF-8: ${quote(linkname)}`);
}

/** Returns the mode of an entry without setuid and setgid, with the bits that this process needs. */
function modeOf({ mode }: Header, needed: number): number {
  return (mode & 0o1777) | needed;
}

function ownerOf({ name, uid, gid, pax }: Header): [uid: number, gid: number] {
  // Numbers that do not fit the header are in a PAX record.
  const records = new Map(Object.entries(pax ?? {}));
  const owner = [Number(records.get('uid') ?? uid), Number(records.get('gid') ?? gid)] as const;
  if (owner.every((id) => Number.isInteger(id) && id >= 0 && id <= OWNER_MAX)) return [...owner];
  throw invalid(`${quote(name)} has an owner whose number is out of range`);
}
