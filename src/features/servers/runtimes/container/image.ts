import { readFile } from 'node:fs/promises';
import { join, normalize } from 'node:path';
import { type Static, Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { ServiceError } from '../../../../platform/errors.ts';
import type { UnpackedBuild } from '../../../builds/builds.ts';
import type { StartOrder } from '../runtime.ts';

const USER_ID_MAX = 2 ** 31 - 1;
const UserId = Type.Integer({ minimum: 0, maximum: USER_ID_MAX });

/** The parts of an image's configuration that decide how its program runs. Muster decides everything else. */
const ImageProcess = Type.Object({
  args: Type.Optional(Type.Array(Type.String())),
  env: Type.Optional(Type.Array(Type.String())),
  cwd: Type.Optional(Type.String()),
  user: Type.Optional(
    Type.Object({
      uid: Type.Optional(UserId),
      gid: Type.Optional(UserId),
      additionalGids: Type.Optional(Type.Array(UserId)),
    }),
  ),
});
export type ImageProcess = Static<typeof ImageProcess>;

const UnpackedConfig = Type.Object({ process: Type.Optional(ImageProcess) });

/** Directories of the kernel. A program that starts in one of them could reach files outside of its container. */
const KERNEL_DIRECTORY = /^\/(proc|sys|dev)(\/|$)/;

/** Returns the path of an unpacked image's files. */
export const rootOf = ({ directory }: Pick<UnpackedBuild, 'directory'>): string => join(directory, 'rootfs');

/** Splits a variable of an image's environment, which is `NAME=value`. */
function splitVariable(variable: string): [name: string, value: string] {
  const [name = '', ...value] = variable.split('=');
  return [name, value.join('=')];
}

/** The variable by which programs find others, unless the image sets it. */
const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

interface ImageProgram {
  command: string[];
  /** Those of the image, replaced by those of the order. */
  environment: Record<string, string>;
  directory: string;
}

/** Returns the program of an image, as its own configuration and the order say. */
export function programOfImage({ build, ...order }: StartOrder, image: ImageProcess): ImageProgram {
  const command = build.command.length > 0 ? build.command : (image.args ?? []);
  const own = Object.fromEntries((image.env ?? []).map(splitVariable));
  return {
    command: [...command, ...order.arguments],
    environment: { PATH, ...own, ...order.environment },
    directory: image.cwd || '/',
  };
}

const refusal = (error: string) => new ServiceError('SERVERS_SERVER_FAILED_TO_CREATE', { error });

/** Reads how an unpacked image's program runs. Throws a ServiceError that says what is wrong with it. */
export async function readImage({ directory }: Pick<UnpackedBuild, 'directory'>): Promise<ImageProcess> {
  const config: unknown = JSON.parse(await readFile(join(directory, 'config.json'), 'utf8'));
  if (!Value.Check(UnpackedConfig, config)) throw refusal('the config.json of the build does not describe a process');
  const image = config.process ?? {};
  const { cwd } = image;
  if (cwd === undefined) return image;
  // The kernel, too, takes // and /./ for /.
  const path = normalize(cwd);
  if (!cwd.startsWith('/') || cwd.split('/').includes('..') || KERNEL_DIRECTORY.test(path)) {
    throw refusal(`the build starts in "${cwd}": use an absolute path outside of /proc, /sys and /dev`);
  }
  return { ...image, cwd: path };
}
