import { chmod, copyFile, mkdir, open, rm } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { readInterpreter, replaceInterpreter } from './elf-interpreter.ts';
import { POD_EXECUTABLE } from './pod-names.ts';

const LISTED_WITHIN_MS = 10_000;
/** The number under which the process that lists libraries has the executable. */
const LISTED_FD = 3;
/** A line of the loader's list: a library that a program needs, and where it is. */
const LIBRARY = /^\s*([^\s/]+) => (\/\S+) \(/gm;

interface ExecutableCopyOptions {
  /** The executable of Muster. */
  executable: string;
  /** The directory to make. */
  directory: string;
}

/**
 * Copies Muster's executable to a directory, so that it runs in an image with another C library or none. Copies its loader
 * and libraries too, and makes the copy name that loader.
 */
export async function copyExecutable({ executable, directory }: ExecutableCopyOptions): Promise<void> {
  await rm(directory, { recursive: true, force: true });
  await mkdir(directory, { recursive: true });
  const copyAs = async (from: string, name: string) => {
    const file = join(directory, basename(name));
    await copyFile(from, file);
    await chmod(file, 0o755);
    return file;
  };
  await using file = await open(await copyAs(executable, POD_EXECUTABLE.file), 'r+');
  const loader = await readInterpreter(file);
  if (loader === undefined) return;
  for (const [, name = '', path = ''] of (await listLibraries(loader, executable)).matchAll(LIBRARY)) {
    await copyAs(path, name);
  }
  await copyAs(loader, POD_EXECUTABLE.loader);
  await replaceInterpreter(file, POD_EXECUTABLE.loader);
}

async function listLibraries(loader: string, executable: string): Promise<string> {
  // Other processes may not open the executable by its path, because this one hides from them.
  await using file = await open(executable);
  const listing = Bun.spawn([loader, '--list', `/proc/self/fd/${LISTED_FD}`], {
    stdio: ['ignore', 'pipe', 'pipe', file.fd],
    env: {},
    timeout: LISTED_WITHIN_MS,
  });
  const [text, errors] = await Promise.all([new Response(listing.stdout).text(), new Response(listing.stderr).text()]);
  if ((await listing.exited) !== 0) throw new Error(`the libraries of Muster could not be listed: ${errors.trim()}`);
  return text;
}
