import { type Static, Type } from '@sinclair/typebox';
import { invalid, quote } from '../archives/invalid-build.ts';
import type { ImageConfig } from './image-layout.ts';
import { resolveUser } from './passwd.ts';
import type { Rootfs } from './rootfs.ts';

const DEFAULT_PATH = 'PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';
const OCI_VERSION = '1.0.2';

const Id = Type.Integer({ minimum: 0, maximum: 0x7f_ff_ff_ff });
const Text = Type.String({ pattern: '^[^\\0]*$' });
/** The program of a container, in the terms of the OCI runtime specification. */
export const Process = Type.Object({
  args: Type.Array(Text, { maxItems: 10_000 }),
  env: Type.Array(Text, { maxItems: 10_000 }),
  cwd: Text,
  user: Type.Object({
    uid: Id,
    gid: Id,
    additionalGids: Type.Optional(Type.Array(Id, { maxItems: 1_000 })),
  }),
});
export type Process = Static<typeof Process>;

/** The part of a bundle's `config.json` that is taken from an upload. The runtime decides everything else. */
export const BundleConfig = Type.Object({
  process: Type.Object({
    args: Type.Optional(Process.properties.args),
    env: Type.Optional(Process.properties.env),
    cwd: Type.Optional(Text),
    user: Type.Optional(Type.Partial(Process.properties.user)),
  }),
});

/** Returns the program of an image. Throws BUILDS_BUILD_INVALID if it has none, or if its user does not exist. */
export async function processOfImage({ config }: ImageConfig, rootfs: Rootfs): Promise<Process> {
  const wanted = config?.User ?? '';
  const user = resolveUser(wanted, {
    passwd: (await rootfs.readText('etc/passwd')) ?? '',
    group: (await rootfs.readText('etc/group')) ?? '',
  });
  if (!user) throw invalid(`its user ${quote(wanted)} is not in /etc/passwd and /etc/group of the image`);
  const { home = '/', ...ids } = user;
  return checkedProcess({
    args: [...(config?.Entrypoint ?? []), ...(config?.Cmd ?? [])],
    env: withDefaults(config?.Env ?? [], [DEFAULT_PATH, `HOME=${home || '/'}`]),
    cwd: config?.WorkingDir || '/',
    user: ids,
  });
}

/** Returns the program of an uploaded bundle. */
export function processOfBundle({ process: program }: Static<typeof BundleConfig>): Process {
  const { uid = 0, gid = 0, additionalGids = [] } = program.user ?? {};
  return checkedProcess({
    args: program.args ?? [],
    env: withDefaults(program.env ?? [], [DEFAULT_PATH]),
    cwd: program.cwd || '/',
    user: { uid, gid, additionalGids },
  });
}

/** Returns the `config.json` of an unpacked bundle. `command` replaces the arguments of the upload unless it is empty. */
export function bundleConfigOf(process: Process, command: string[]): string {
  if (process.args.length === 0 && command.length === 0) {
    throw invalid('it names no program: set ENTRYPOINT or CMD in its Dockerfile, or send a command');
  }
  return JSON.stringify({ ociVersion: OCI_VERSION, process, root: { path: 'rootfs' } });
}

function checkedProcess(checked: Process): Process {
  const texts = [...checked.args, ...checked.env, checked.cwd];
  if (texts.some((text) => text.includes('\0'))) throw invalid('its program or environment has the character zero');
  if (!checked.cwd.startsWith('/')) throw invalid(`its working directory ${quote(checked.cwd)} is not absolute`);
  return checked;
}

/** Adds variables that are not set. */
function withDefaults(env: string[], defaults: string[]): string[] {
  const names = new Set(env.map((variable) => variable.split('=', 1)[0]));
  return [...env, ...defaults.filter((variable) => !names.has(variable.split('=', 1)[0]))];
}
