import { createReadStream, createWriteStream, existsSync } from 'node:fs';
import { copyFile, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createZstdCompress } from 'node:zlib';
import { Failure } from '../../terminal/failure.ts';
import { showWhile } from '../../terminal/progress-line.ts';
import { terminal } from '../../terminal/terminal.ts';
import { environmentWith } from '../environment.ts';
import { describeSecrets, type LeftOut, listLeftOut, nameSome } from './files.ts';
import type { PackageContent, ServerPackage } from './package.ts';
import type { Build } from './project-file.ts';
import { writeContent } from './temporary-content.ts';

/** A program that builds images. */
interface Builder {
  name: string;
  /** Fails if the program does not work here, for instance without its daemon. */
  check: string[];
  build: string[];
  /** Takes the list of what is left out by an option. Docker takes that beside the Dockerfile. */
  has_ignore_option: boolean;
  /** Writes an image to a file, as `docker save` does. */
  save: (image: string, file: string) => string[];
}

const saveTo = (image: string, file: string) => ['save', '--output', file, image];
const BUILDERS: Builder[] = [
  { name: 'docker', check: ['version'], build: ['build'], has_ignore_option: false, save: saveTo },
  {
    name: 'podman',
    check: ['info'],
    build: ['build', '--layers', '--format', 'docker'],
    has_ignore_option: true,
    save: (image, file) => ['save', '--format', 'docker-archive', '--output', file, image],
  },
  {
    name: 'buildah',
    check: ['info'],
    build: ['build', '--layers', '--format', 'docker'],
    has_ignore_option: true,
    save: (image, file) => ['push', image, `docker-archive:${file}`],
  },
];

/** A program asks its daemon whether it works, which may never answer. */
const CHECK_MS = 30_000;

/** What a list of ignored files reads as a part of a pattern. */
const PATTERN_SIGNS = /[\\*?[\]!#]/g;

/** Builds the image of a Dockerfile. Its id is enough to know whether the service has it, so only `open` writes a file. */
export async function packImage(
  build: Build & { dockerfile: string },
  stopping: AbortSignal | undefined,
): Promise<ServerPackage> {
  const { path, command, dockerfile, platform, args = {} } = build;
  const builder = await findBuilder(basename(dockerfile));
  terminal.say(`build    ${basename(dockerfile)}, by ${builder.name}`);
  const directory = await mkdtemp(join(tmpdir(), 'muster-image-'));
  const id_file = join(directory, 'id');
  const left_out = listLeftOut(path);
  await sayLeftOut(builder, left_out);
  const set = Object.entries(args).flatMap(([name, value]) => ['--build-arg', `${name}=${value}`]);
  try {
    const files = await copyDockerfile({ build, builder, left_out: left_out.paths, directory });
    const ignoring = builder.has_ignore_option ? ['--ignorefile', files.ignore_file] : [];
    const chosen = platform === undefined ? [] : ['--platform', platform];
    const named = ['--iidfile', id_file, '--file', files.dockerfile, ...chosen, ...ignoring];
    await run([builder.name, ...builder.build, ...named, ...set, path], stopping);
    const id = (await readFile(id_file, 'utf8')).trim();
    const digest = new Bun.CryptoHasher('sha256').update(JSON.stringify([id, command ?? []])).digest('hex');
    const open = () => saveImage(builder, id, stopping);
    return { kind: 'docker_image', file_name: 'image.tar.zst', open, secrets: [], unreadable: [], command, digest };
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

/** Says which files with secrets do not get into the image; or that some may, because this Docker takes no list of them. */
async function sayLeftOut({ name, has_ignore_option }: Builder, { paths, secrets }: LeftOut): Promise<void> {
  if (has_ignore_option || (await works([name, 'buildx', 'version']))) {
    const sentence = describeSecrets(secrets);
    if (sentence !== undefined) terminal.say(sentence);
  } else if (paths.length > 0) {
    const advice = 'name them in .dockerignore, or install buildx';
    terminal.say(`secrets  docker without buildx may put these into the image: ${nameSome(paths)} (${advice})`);
  }
}

/**
 * Copies a Dockerfile to a directory. Beside it is the list of what is not part of the build: that of the folder, and the
 * given paths of the folder.
 */
async function copyDockerfile({
  build: { path, dockerfile },
  builder,
  left_out,
  directory,
}: {
  build: Build & { dockerfile: string };
  builder: Builder;
  left_out: string[];
  directory: string;
}): Promise<{ dockerfile: string; ignore_file: string }> {
  const copy = join(directory, basename(dockerfile));
  const ignore_file = `${copy}.dockerignore`;
  // Docker does not know .containerignore.
  const list_names = builder.name === 'docker' ? ['.dockerignore'] : ['.containerignore', '.dockerignore'];
  const own_lists = [`${dockerfile}.dockerignore`, ...list_names.map((name) => join(path, name))];
  const own_list = own_lists.find((file) => existsSync(file));
  const own = own_list === undefined ? '' : await readFile(own_list, 'utf8');
  await copyFile(dockerfile, copy);
  await writeFile(ignore_file, [own, ...left_out.map((one) => one.replace(PATTERN_SIGNS, '\\$&')), ''].join('\n'));
  return { dockerfile: copy, ignore_file };
}

/** Returns the first program that works here. */
async function findBuilder(dockerfile: string): Promise<Builder> {
  for (const builder of BUILDERS) {
    if (Bun.which(builder.name) === null) continue;
    if (await works([builder.name, ...builder.check])) return builder;
  }
  const advice = 'Install one, or upload a directory instead: build.path and build.command in muster.yaml';
  throw new Failure(`${dockerfile} needs docker, podman or buildah on this machine, and none works here. ${advice}.`);
}

/** Returns whether a command ends in time, and without an error. */
async function works(command: string[]): Promise<boolean> {
  const silent = { stdin: 'ignore', stdout: 'ignore', stderr: 'ignore' } as const;
  return (await Bun.spawn(command, { env: environmentWith(), timeout: CHECK_MS, ...silent }).exited) === 0;
}

/** Writes an image to a compressed file. */
async function saveImage(builder: Builder, image: string, stopping?: AbortSignal): Promise<PackageContent> {
  return await writeContent('image.tar.zst', async (file) => {
    const saved = join(dirname(file), 'image.tar');
    await run([builder.name, ...builder.save(image, saved)], stopping);
    await showWhile('build    compressing the image', () =>
      pipeline(createReadStream(saved), createZstdCompress(), createWriteStream(file), { signal: stopping }),
    );
    await rm(saved);
  });
}

/** Runs a program to its end, with all its output on stderr. A stop ends it. */
async function run(command: string[], stopping: AbortSignal | undefined): Promise<void> {
  const io = { stdin: 'ignore', stdout: 2, stderr: 2 } as const;
  const { exited } = Bun.spawn(command, { env: environmentWith(), ...io, ...(stopping && { signal: stopping }) });
  const exit_code = await exited;
  stopping?.throwIfAborted();
  if (exit_code !== 0) throw new Failure(`"${command.slice(0, 2).join(' ')}" failed with exit code ${exit_code}.`);
}
