import { createRules, dataDirectoryRefusal, FILES_MAX, IGNORE_FILE, TOKEN_FILE } from '../../shared/left-out.ts';

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
  if (!file) throw new Error('The chosen folder has no files: choose another one.');
  if (file.webkitRelativePath === '') return { is: 'file', file };
  const [name = ''] = file.webkitRelativePath.split('/');
  return {
    is: 'folder',
    name,
    files: files.map((one) => ({ path: one.webkitRelativePath.slice(name.length + 1), file: one })),
  };
}

/**
 * Returns the files of a folder that are uploaded. Throws an Error if there are none or more than FILES_MAX, and
 * for the data directory of a service.
 */
export async function selectFiles({ name, files }: Chosen & { is: 'folder' }): Promise<Folder> {
  if (files.some(({ path }) => path === TOKEN_FILE)) throw new Error(dataDirectoryRefusal(name));
  const whyLeftOut = createRules((await files.find(({ path }) => path === IGNORE_FILE)?.file.text()) ?? '');
  const data_directories = files
    .filter(({ path }) => path.endsWith(`/${TOKEN_FILE}`))
    .map(({ path }) => path.slice(0, -TOKEN_FILE.length));
  const isInData = (path: string) => data_directories.some((directory) => path.startsWith(directory));
  const kept = files.filter(({ path }) => whyLeftOut(path) === undefined && !isInData(path));
  checkCount(name, kept.length);
  if (kept.length === 0) {
    throw new Error(`The folder ${name} has no files to upload: choose another one, or correct its ${IGNORE_FILE}.`);
  }
  return {
    name,
    files: kept.sort((one, other) => (one.path < other.path ? -1 : 1)),
    secrets: files.filter(({ path }) => whyLeftOut(path) === 'secret' && !isInData(path)).map(({ path }) => path),
  };
}

function checkCount(name: string, count: number): void {
  if (count <= FILES_MAX) return;
  const advice = `leave some out by its ${IGNORE_FILE}, or upload an archive`;
  throw new Error(`The folder ${name} has more than ${FILES_MAX} files to upload: ${advice}.`);
}

async function readEntry(entry: FileSystemEntry): Promise<Chosen> {
  if (isFile(entry)) return { is: 'file', file: await fileOf(entry) };
  return { is: 'folder', name: entry.name, files: isDirectory(entry) ? await readFolder(entry) : [] };
}

/** Returns the files of a folder, without those that are ignored: a folder such as .git may have very many. */
async function readFolder(root: FileSystemDirectoryEntry): Promise<FolderFile[]> {
  const files: FolderFile[] = [];
  let kept = 0;
  const visit = async (entries: FileSystemEntry[], below: string): Promise<void> => {
    for (const one of entries) {
      const path = `${below}${one.name}`;
      if (isFile(one) && (path === IGNORE_FILE || whyLeftOut(path) !== 'ignored')) {
        files.push({ path, file: await fileOf(one) });
        kept += whyLeftOut(path) === undefined ? 1 : 0;
        checkCount(root.name, kept);
      } else if (isDirectory(one) && whyLeftOut(`${path}/`) !== 'ignored') {
        await visit(await entriesOf(one), `${path}/`);
      }
    }
  };
  const entries = await entriesOf(root);
  const ignore_file = entries.filter(isFile).find(({ name }) => name === IGNORE_FILE);
  const whyLeftOut = createRules(ignore_file ? await (await fileOf(ignore_file)).text() : '');
  await visit(entries, '');
  return files;
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
