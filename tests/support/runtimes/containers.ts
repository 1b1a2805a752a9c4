import { constants } from 'node:fs';
import { chmod, copyFile, mkdir, symlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { UnpackedBuild } from '../../../src/features/builds/builds.ts';
import { findContainerPrograms } from '../../../src/features/servers/runtimes/container/container-programs.ts';
import {
  type ContainerRuntimeOptions,
  openContainerRuntime,
} from '../../../src/features/servers/runtimes/container/container-runtime.ts';
import { IS_FULL_LENGTH } from '../full-length.ts';
import { packTar, type TarEntry } from '../tar.ts';
import { dockerLayout } from './images.ts';

const programs = findContainerPrograms();
/** A shell with its commands that needs no libraries, of which images are made. */
const busybox = Bun.which('busybox');

/** Why containers cannot be tried here; undefined if they can. */
export const WITHOUT_CONTAINERS = IS_FULL_LENGTH ? reasonWithoutContainers() : 'only a run at full length tries them';

/** Returns why this machine cannot run containers; undefined if it can. */
export function reasonWithoutContainers(): string | undefined {
  if (typeof programs === 'string') return programs;
  if (busybox === null) return 'install busybox-static';
  return process.getuid?.() === 0 ? undefined : 'containers need root';
}

const COMMANDS = 'sh cat dd echo env head id kill ls mount nc printf ps rm seq sleep unshare yes';
/** A user that is in no file of the image. */
export const IMAGE_USER = 1_234;

interface ImageChanges {
  user?: { uid: number; gid: number; additionalGids?: number[] };
  env?: string[];
  args?: string[];
  cwd?: string;
}

/** Makes an unpacked image: a few commands, and a script in its working directory. */
export async function makeImage(directory: string, script: string, changes: ImageChanges = {}): Promise<UnpackedBuild> {
  if (busybox === null) throw new Error('there is no busybox');
  const build = join(directory, 'builds', crypto.randomUUID());
  const root = join(build, 'rootfs');
  for (const name of ['bin', 'game', 'etc']) await mkdir(join(root, name), { recursive: true, mode: 0o755 });
  await copyFile(busybox, join(root, 'bin/busybox'));
  await chmod(join(root, 'bin/busybox'), 0o755);
  for (const command of COMMANDS.split(' ')) await symlink('busybox', join(root, 'bin', command));
  await Bun.write(join(root, 'game/run.sh'), script);
  const image = {
    args: ['/bin/sh', 'run.sh'],
    env: ['PATH=/bin', 'HOME=/tmp'],
    cwd: '/game',
    user: { uid: IMAGE_USER, gid: IMAGE_USER },
    ...changes,
  };
  await Bun.write(join(build, 'config.json'), JSON.stringify({ ociVersion: '1.0.2', process: image }));
  return { game_id: crypto.randomUUID(), kind: 'oci_bundle', sha256: undefined, directory: build, command: [] };
}

/** Makes an unpacked image that runs a JavaScript program: Bun with the libraries that it needs. */
export async function makeScriptImage(directory: string, script: string): Promise<UnpackedBuild> {
  const build = await makeImage(directory, '', { args: ['/bin/bun', 'main.js'] });
  const root = join(build.directory, 'rootfs');
  await copyProgram(process.execPath, join(root, 'bin/bun'));
  for (const [library = ''] of (await Bun.$`ldd ${process.execPath}`.text()).matchAll(/\/\S+/g)) {
    await copyProgram(library, join(root, library));
  }
  await Bun.write(join(root, 'game/main.js'), script);
  return build;
}

/** Lists Bun with the libraries that it needs, as files of an image: `/bin/bun`. */
export async function listBunFiles(): Promise<TarEntry[]> {
  const { stdout } = await Bun.$`ldd ${process.execPath}`.quiet();
  const libraries = [...stdout.toString().matchAll(/\/\S+/g)].map(([library]) => library);
  const files = [['/bin/bun', process.execPath], ...libraries.map((library) => [library, library])];
  return await Promise.all(
    files.map(async ([inside = '', file = '']) => ({
      name: inside.slice(1),
      content: Buffer.from(await Bun.file(file).bytes()),
      mode: 0o755,
    })),
  );
}

async function copyProgram(from: string, to: string): Promise<void> {
  await mkdir(dirname(to), { recursive: true, mode: 0o755 });
  await copyFile(from, to, constants.COPYFILE_FICLONE);
  await chmod(to, 0o755);
}

/** Packs what `docker save` writes for an image that runs a shell script. */
export async function packImage(
  script: string,
  image_tag: string,
  { user = String(IMAGE_USER), command = ['/bin/sh', '/run.sh'], files = [] as TarEntry[] } = {},
): Promise<Buffer> {
  if (busybox === null) throw new Error('there is no busybox');
  const commands: TarEntry[] = COMMANDS.split(' ').map((name) => ({
    name: `bin/${name}`,
    type: 'symlink',
    linkname: 'busybox',
  }));
  const program: TarEntry = { name: 'bin/busybox', content: await Bun.file(busybox).bytes(), mode: 0o755 };
  const config = { Cmd: command, Env: ['PATH=/bin', 'HOME=/tmp'], User: user };
  const layers = [
    [program, ...commands],
    [{ name: 'run.sh', content: script }, ...files],
  ];
  return await packTar(await dockerLayout({ layers, tags: [image_tag], config }));
}

/** The options of a runtime of containers that have no default. */
type OwnOptions = Pick<ContainerRuntimeOptions, 'host' | 'api_url'>;
interface ContainerChanges extends Partial<Omit<ContainerRuntimeOptions, 'programs' | 'directory'>> {
  /** Programs to run in place of those of this machine. */
  replaced?: Partial<ContainerRuntimeOptions['programs']>;
}

/** Opens the runtime of containers over a directory. */
export async function openContainers(
  directory: string,
  { has_read_only_root = false, replaced = {}, ...options }: OwnOptions & ContainerChanges,
) {
  if (typeof programs === 'string') throw new Error(programs);
  const folder = join(directory, 'containers');
  await mkdir(folder, { recursive: true, mode: 0o700 });
  return openContainerRuntime({
    ...options,
    programs: { ...programs, ...replaced },
    directory: folder,
    has_read_only_root,
  });
}
