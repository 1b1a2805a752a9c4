import ignore from 'ignore';
import { FILES_MAX, IGNORE_FILE, NEVER, SECRETS } from '../../client/left-out.ts';

/** A file below a folder. */
export interface FolderFile {
  /** From the folder, with slashes. */
  path: string;
  file: File;
}

export interface Folder {
  name: string;
  /** Sorted by path. */
  files: FolderFile[];
  /** Files that are left out because they usually hold secrets. */
  secrets: string[];
}

/** What a user dropped or chose: one file, or one folder. */
export type Chosen = { is: 'file'; file: File } | { is: 'folder'; name: string; files: FolderFile[] };

/** Reads the file or folder that was dropped. Call it while the event is handled. Throws an Error for anything else. */
export function readDrop({ items }: DataTransfer): Promise<Chosen> {
  const entries = [...items].flatMap((item) => item.webkitGetAsEntry() ?? []);
  const [entry] = entries;
  if (!entry || entries.length > 1) throw new Error('Drop one folder, or one file.');
  return readEntry(entry);
}

/** Reads the files that a user chose in a dialog of the browser: those of one folder, or one file. */
export function readChosen(files: File[]): Chosen {
  const [file] = files;
  if (!file) throw new Error('The folder has no files.');
  if (file.webkitRelativePath === '') return { is: 'file', file };
  const [name = ''] = file.webkitRelativePath.split('/');
  return {
    is: 'folder',
    name,
    files: files.map((one) => ({ path: one.webkitRelativePath.slice(name.length + 1), file: one })),
  };
}

/** Returns the files of a folder that are uploaded. Throws an Error if there are none, or too many. */
export async function selectFiles({ name, files }: Chosen & { is: 'folder' }): Promise<Folder> {
  const own = await files.find(({ path }) => path === IGNORE_FILE)?.file.text();
  const rules = ignore()
    .add(NEVER)
    .add(SECRETS)
    .add(own ?? '');
  const without_secrets = ignore()
    .add(NEVER)
    .add(own ?? '');
  const kept = files.filter(({ path }) => !rules.ignores(path));
  if (kept.length === 0) throw new Error(`The folder ${name} has no files.`);
  return {
    name,
    files: kept.sort((one, other) => (one.path < other.path ? -1 : 1)),
    secrets: files.filter(({ path }) => rules.ignores(path) && !without_secrets.ignores(path)).map(({ path }) => path),
  };
}

async function readEntry(entry: FileSystemEntry): Promise<Chosen> {
  if (isFile(entry)) return { is: 'file', file: await fileOf(entry) };
  const files: FolderFile[] = [];
  const visit = async (folder: FileSystemDirectoryEntry, below: string): Promise<void> => {
    for (const one of await entriesOf(folder)) {
      const path = `${below}${one.name}`;
      // A folder that is never uploaded, such as .git, may have very many files.
      if (NEVER.includes(one.name)) continue;
      if (isFile(one)) files.push({ path, file: await fileOf(one) });
      else if (isDirectory(one)) await visit(one, `${path}/`);
      if (files.length > FILES_MAX) throw new Error(`The folder ${entry.name} has more than ${FILES_MAX} files.`);
    }
  };
  if (isDirectory(entry)) await visit(entry, '');
  return { is: 'folder', name: entry.name, files };
}

/** Returns the content of a folder. The browser gives it in several answers, the last of which is empty. */
async function entriesOf(folder: FileSystemDirectoryEntry): Promise<FileSystemEntry[]> {
  const reader = folder.createReader();
  const all: FileSystemEntry[] = [];
  for (;;) {
    const some = await new Promise<FileSystemEntry[]>((resolve, reject) => reader.readEntries(resolve, reject));
    if (some.length === 0) return all;
    all.push(...some);
  }
}

function fileOf(entry: FileSystemFileEntry): Promise<File> {
  return new Promise((resolve, reject) => entry.file(resolve, reject));
}

const isFile = (entry: FileSystemEntry): entry is FileSystemFileEntry => entry.isFile;
const isDirectory = (entry: FileSystemEntry): entry is FileSystemDirectoryEntry => entry.isDirectory;
