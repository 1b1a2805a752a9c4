import { loadScript } from '../data/scripts.ts';
import { type Chosen, type Folder, type FolderFile, selectFiles } from './folder.ts';

const SCRIPT = /\.(js|mjs|cjs|ts|mts|cts)$/;
const ARCHIVE = /\.(tar(\.\w+)?|tgz|tzst)$/;
const ELF = '\u007fELF';
/** Files whose first bytes are read at once. */
const READ_AT_ONCE = 16;
const MODES = { program: 0o755, other: 0o644 };

/** A game server to upload: one script, an archive as it is, or a folder to pack. */
export type Plan =
  | { kind: 'javascript'; file: File }
  | { kind: 'archive'; file: File }
  | { kind: 'folder'; folder: Folder; programs: string[] };

/** Returns how a file or folder is uploaded. Throws an Error for a file that cannot be a game server. */
export async function planUpload(chosen: Chosen): Promise<Plan> {
  if (chosen.is === 'folder') {
    const folder = await selectFiles(chosen);
    return { kind: 'folder', folder, programs: await findPrograms(folder.files) };
  }
  const { file } = chosen;
  if (file.size === 0) throw new Error(`${file.name} is empty: choose another file.`);
  if (SCRIPT.test(file.name)) return { kind: 'javascript', file };
  if (ARCHIVE.test(file.name)) return { kind: 'archive', file };
  throw new Error(
    `${file.name} is neither a folder, a tar archive (.tar, .tar.gz, .tar.zst) nor one script (.js, .ts).`,
  );
}

/**
 * Packs a folder as a compressed tar, which is equal for equal files. Calls `onPacked` with the bytes of each file.
 */
export async function packFolder(
  { files }: Folder,
  programs: string[],
  { onPacked, signal }: { onPacked(bytes: number): void; signal: AbortSignal },
): Promise<Blob> {
  const { createTarPacker } = await loadScript(() => import('modern-tar'));
  const { readable, controller } = createTarPacker();
  const packed = new Response(readable.pipeThrough(new CompressionStream('gzip'), { signal })).blob();
  const addAll = async () => {
    for (const { path, file } of files) {
      const mode = programs.includes(path) ? MODES.program : MODES.other;
      const entry = controller.add({ name: path, size: file.size, mode, mtime: new Date(0) });
      await file.stream().pipeTo(entry, { signal });
      onPacked(file.size);
    }
    controller.finalize();
  };
  const adding = addAll().catch((error: unknown) => {
    controller.error(error);
    throw error;
  });
  const [blob] = await Promise.all([packed, adding]);
  return blob;
}

/** Returns the paths of programs, recognized by their first bytes: a browser does not know which files are executable. */
async function findPrograms(files: FolderFile[]): Promise<string[]> {
  const programs: FolderFile[] = [];
  for (let from = 0; from < files.length; from += READ_AT_ONCE) {
    const some = files.slice(from, from + READ_AT_ONCE);
    const are_programs = await Promise.all(some.map(isProgram));
    programs.push(...some.filter((_, index) => are_programs[index]));
  }
  return programs.map(({ path }) => path);
}

async function isProgram({ file }: FolderFile): Promise<boolean> {
  const begin = await file.slice(0, ELF.length).text();
  return begin === ELF || begin.startsWith('#!');
}
