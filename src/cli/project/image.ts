import { createReadStream, createWriteStream, existsSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createZstdCompress } from 'node:zlib';
import { environmentWith } from '../environment.ts';
import { EXIT, Failure } from '../failure.ts';
import { showWhile } from '../progress-line.ts';
import { terminal } from '../terminal.ts';
import type { PackageContent, ServerPackage } from './package.ts';
import type { Build } from './project-file.ts';

/** A program that builds images. */
interface Builder {
  name: string;
  /** Fails if the program does not work here, for instance without its daemon. */
  check: string[];
  build: string[];
  /** Writes an image to a file, as `docker save` does. */
  save: (image: string, file: string) => string[];
}

const saveTo = (image: string, file: string) => ['save', '--output', file, image];
const BUILDERS: Builder[] = [
  { name: 'docker', check: ['version'], build: ['build'], save: saveTo },
  {
    name: 'podman',
    check: ['info'],
    build: ['build', '--layers', '--format', 'docker'],
    save: (image, file) => ['save', '--format', 'docker-archive', '--output', file, image],
  },
  {
    name: 'buildah',
    check: ['info'],
    build: ['build', '--layers', '--format', 'docker'],
    save: (image, file) => ['push', image, `docker-archive:${file}`],
  },
];

/** Builds the image of a Dockerfile. Its id is enough to know whether the service has it, so only `open` writes a file. */
export async function packImage(
  build: Build & { dockerfile: string },
  stopping: AbortSignal | undefined,
): Promise<ServerPackage> {
  const { path, command, dockerfile, args = {} } = build;
  if (!existsSync(dockerfile)) {
    throw new Failure(`There is no ${dockerfile}: correct the dockerfile of the configuration.`, EXIT.not_found);
  }
  const builder = await findBuilder(basename(dockerfile));
  terminal.say(`build    ${basename(dockerfile)}, by ${builder.name}`);
  const directory = await mkdtemp(join(tmpdir(), 'muster-image-'));
  const id_file = join(directory, 'id');
  const set = Object.entries(args).flatMap(([name, value]) => ['--build-arg', `${name}=${value}`]);
  try {
    await run([builder.name, ...builder.build, '--iidfile', id_file, '--file', dockerfile, ...set, path], stopping);
    const id = (await readFile(id_file, 'utf8')).trim();
    const digest = new Bun.CryptoHasher('sha256').update(JSON.stringify([id, command ?? []])).digest('hex');
    const open = () => saveImage(builder, id, stopping);
    return { kind: 'docker_image', file_name: 'image.tar.zst', open, secrets: [], command, digest };
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

/** Returns the first program that works here. */
async function findBuilder(dockerfile: string): Promise<Builder> {
  for (const builder of BUILDERS) {
    if (Bun.which(builder.name) === null) continue;
    const checked = Bun.spawn([builder.name, ...builder.check], {
      env: environmentWith(),
      stdin: 'ignore',
      stdout: 'ignore',
      stderr: 'ignore',
    });
    if ((await checked.exited) === 0) return builder;
  }
  const advice = 'Install one, or upload a directory instead: build.path and build.command in muster.yaml';
  throw new Failure(`${dockerfile} needs docker, podman or buildah on this machine, and none works here. ${advice}.`);
}

/** Writes an image to a compressed file. */
async function saveImage(builder: Builder, image: string, stopping?: AbortSignal): Promise<PackageContent> {
  const directory = await mkdtemp(join(tmpdir(), 'muster-image-'));
  const remove = () => rm(directory, { recursive: true, force: true });
  const [saved, compressed] = [join(directory, 'image.tar'), join(directory, 'image.tar.zst')];
  try {
    await run([builder.name, ...builder.save(image, saved)], stopping);
    await showWhile('build    compressing the image', () =>
      pipeline(createReadStream(saved), createZstdCompress(), createWriteStream(compressed), { signal: stopping }),
    );
    await rm(saved);
  } catch (error) {
    await remove();
    throw error;
  }
  return { blob: Bun.file(compressed), [Symbol.asyncDispose]: remove };
}

/** Runs a program to its end, with all its output on stderr. A stop ends it. */
async function run(command: string[], stopping: AbortSignal | undefined): Promise<void> {
  const io = { stdin: 'ignore', stdout: 2, stderr: 2 } as const;
  const { exited } = Bun.spawn(command, { env: environmentWith(), ...io, ...(stopping && { signal: stopping }) });
  const exit_code = await exited;
  stopping?.throwIfAborted();
  if (exit_code !== 0) throw new Failure(`"${command.slice(0, 2).join(' ')}" failed with exit code ${exit_code}.`);
}
