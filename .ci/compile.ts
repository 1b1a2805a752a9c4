// Makes the executable for a target: the program and, where it can host games, PostgreSQL, the migrations, the
// examples, the client, the hub and the documents.
// Never --minify: Elysia reads the text of its handlers (docs/decisions/0002).
import { existsSync } from 'node:fs';
import { cp, mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { $ } from 'bun';
import { buildBundle, HUB_FOLDER } from '../src/features/hub/bundle.ts';
import { packPostgres, postgresArchive } from '../src/platform/database/postgres-files.ts';

/** What an executable is made for. Without `hosts`, it only drives a service that runs elsewhere. */
export interface Target {
  name: string;
  hosts?: 'x64' | 'arm64';
}

export const TARGETS: Target[] = [
  { name: 'linux-x64', hosts: 'x64' },
  { name: 'linux-arm64', hosts: 'arm64' },
  { name: 'darwin-arm64' },
  { name: 'darwin-x64' },
  { name: 'windows-x64' },
];

/** The target of this machine. */
export const HERE = `${process.platform}-${process.arch}`;

/** Where `muster-executable.ts` finds it. */
const LAUNCHER = 'dist/launch.js';
/** The files and folders that an executable that hosts games carries, besides PostgreSQL. */
export const CARRIED = [
  HUB_FOLDER,
  'drizzle',
  'examples',
  'src/client',
  'docs/openapi.json',
  'src/features/devices/link-page.html',
  LAUNCHER,
];

/** Makes what executables that host games carry and that is not in the repository. */
export async function makeCarried(): Promise<void> {
  // The launcher of game servers runs from a file, which starts in half the time of the whole program.
  await $`bun build --target=bun src/launch.ts --outfile ${LAUNCHER}`;
  await rm(HUB_FOLDER, { recursive: true, force: true });
  for (const [name, content] of await buildBundle()) await Bun.write(join(HUB_FOLDER, name), content);
}

interface CompileOptions {
  version: string;
  /** Without the extension that Windows needs. */
  outfile: string;
}

/** Compiles the executable for a target, after `makeCarried`. Bun gets its own program for other targets from npm. */
export async function compile({ name, hosts }: Target, { version, outfile }: CompileOptions): Promise<void> {
  const carried = hosts ? [...CARRIED, await postgresOf(hosts)] : [];
  const assets = carried.map((path) => `--asset=${path}`);
  const define = `MUSTER_BUILD_VERSION=${JSON.stringify(version)}`;
  // Without a target, Bun copies its own program, which runs on this machine even if it is an old one.
  const for_target = name === HERE ? [] : [`--target=bun-${name}`];
  await $`bun build --compile ${for_target} --bytecode --format=esm --sourcemap=inline --no-compile-autoload-dotenv --no-compile-autoload-bunfig --define ${define} ${assets} src/main.ts --outfile ${outfile}`;
}

/** Returns the archive with PostgreSQL for a processor. Packs it first if it is not there. */
async function postgresOf(arch: NonNullable<Target['hosts']>): Promise<string> {
  const archive = postgresArchive(arch);
  if (existsSync(archive)) return archive;
  await packPostgres(archive, { arch, importer: arch === process.arch ? import.meta.dir : await installFor(arch) });
  return archive;
}

/** Installs the locked packages of another processor beside those of this one. Returns the directory. */
async function installFor(arch: string): Promise<string> {
  const directory = `${process.cwd()}/dist/packages-linux-${arch}`;
  await mkdir(directory, { recursive: true });
  for (const path of ['package.json', 'bun.lock', 'patches'])
    await cp(path, join(directory, path), { recursive: true });
  await $`bun install --frozen-lockfile --production --ignore-scripts --os=linux --cpu=${arch}`.cwd(directory);
  return directory;
}
