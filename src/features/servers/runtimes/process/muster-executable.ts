import { existsSync } from 'node:fs';
import { copyFile, link, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { findAsset } from '../../../../platform/assets.ts';
import { listProcesses } from '../../../../platform/system/processes.ts';
import { hasErrorCode } from '../../../../platform/system/system-errors.ts';

/**
 * Returns the path of Muster's executable for servers to run. Servers with other users get a hard link in a directory
 * that they can enter, because the executable may be in a private one: npx, for example, installs into /root. Removes
 * links and copies of earlier executables that nothing runs.
 */
export async function findOwnProgram(directory: string, { is_separate }: { is_separate: boolean }): Promise<string> {
  if (!is_separate) return process.execPath;
  const { dev, ino, size, mtimeMs } = await stat(process.execPath);
  const file = join(directory, `bun-${dev}-${ino}-${size}-${Math.floor(mtimeMs)}`);
  await removeOldPrograms(directory, file);
  if (existsSync(file)) return file;
  await link(process.execPath, file).catch(async (error: unknown) => {
    // Another file system, or one without links.
    if (!hasErrorCode(error, 'EXDEV') && !hasErrorCode(error, 'EPERM')) throw error;
    await copyFile(process.execPath, `${file}.unfinished`);
    await rename(`${file}.unfinished`, file);
  });
  return file;
}

async function removeOldPrograms(directory: string, current: string): Promise<void> {
  const paths = (await readdir(directory))
    .filter((name) => name.startsWith('bun-') || name.endsWith('.unfinished'))
    .map((name) => join(directory, name))
    .filter((path) => path !== current);
  if (paths.length === 0) return;
  const running = new Set<string>();
  for (const pid of listProcesses()) {
    // One that has ended, or a thread of the kernel, has no program.
    const program = await stat(`/proc/${pid}/exe`).catch(() => undefined);
    if (program) running.add(`${program.dev}:${program.ino}`);
  }
  for (const path of paths) {
    const { dev, ino } = await stat(path);
    if (!running.has(`${dev}:${ino}`)) await rm(path);
  }
}

/** The launcher's source, for a service that runs from source. */
const LAUNCHER_SOURCE = join(import.meta.dir, '../../../../launch.ts');

/** Returns the path of the script that launches servers. The executable carries it, and writes it to the directory. */
export async function findLauncher(directory: string): Promise<string> {
  if (!Bun.isStandaloneExecutable) return LAUNCHER_SOURCE;
  const script = await readFile(findAsset('dist/launch.js'));
  const file = join(directory, `launch-${Bun.hash(script).toString(16)}.js`);
  // Written only once, so that a service starts on a full disk. After a power failure, the file may be empty.
  const written = await readFile(file).catch(() => undefined);
  if (written?.equals(script)) return file;
  await writeFile(`${file}.unfinished`, script);
  await rename(`${file}.unfinished`, file);
  return file;
}
