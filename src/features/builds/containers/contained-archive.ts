import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { Value } from '@sinclair/typebox/value';
import type { TakeRoom } from '../archives/tar-reader.ts';
import { unpackArchive } from '../archives/unpack.ts';
import { checkProgram } from '../program.ts';
import type { BaseImage } from './base-image.ts';
import { bundleConfigOf, Process } from './bundle.ts';

/** The directory of the archive in its container, where its command starts. */
const FOLDER = 'server';
const PATH = '/usr/local/bin:/usr/bin:/bin';

interface ContainedArchiveOptions {
  base_image: BaseImage;
  command: string[];
  takeRoom: TakeRoom;
}

/**
 * Unpacks an archive into a new directory as an OCI bundle: the files of the base image, and the archive in one folder of
 * them. So it runs in a container like any other bundle.
 */
export async function unpackContainedArchive(
  archive: ReadableStream<Uint8Array>,
  directory: string,
  { base_image, command, takeRoom }: ContainedArchiveOptions,
): Promise<void> {
  const root = join(directory, 'rootfs');
  await linkTree(join(base_image.directory, 'rootfs'), root);
  const server_directory = join(root, FOLDER);
  await rm(server_directory, { recursive: true, force: true });
  await mkdir(server_directory, { mode: 0o755 });
  await unpackArchive(archive, server_directory, { takeRoom });
  await checkProgram(server_directory, command);
  const { process } = await Bun.file(join(base_image.directory, 'config.json')).json();
  const own = { ...Value.Parse(Process, process), args: [], cwd: `/${FOLDER}` };
  await Bun.write(join(directory, 'config.json'), bundleConfigOf(own, command));
}

/**
 * Copies a directory with owners, modes and times. Its files are hard links where the file system has them, because no
 * container writes to the files of its build.
 */
async function linkTree(from: string, to: string): Promise<void> {
  if ((await copy('--link', from, to)) === undefined) return;
  await rm(to, { recursive: true, force: true });
  const problem = await copy('--reflink=auto', from, to);
  if (problem !== undefined) throw new Error(`the base image could not be copied: ${problem}`);
}

/** Copies a directory. Returns why it failed; undefined if it did not. */
async function copy(how: string, from: string, to: string): Promise<string | undefined> {
  const program = Bun.which('cp', { PATH }) ?? 'cp';
  const copying = Bun.spawn([program, '--archive', how, '--no-target-directory', from, to], {
    stdin: 'ignore',
    stdout: 'ignore',
    stderr: 'pipe',
    env: { LC_ALL: 'C' },
  });
  const errors = await new Response(copying.stderr).text();
  const status = await copying.exited;
  return status === 0 ? undefined : errors.trim() || `it ended with ${status}`;
}
