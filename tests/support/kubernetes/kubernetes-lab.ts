import { existsSync, realpathSync } from 'node:fs';
import { chmod, chown, copyFile, mkdir, mkdtemp, rm, symlink } from 'node:fs/promises';
import { homedir, networkInterfaces, tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { parse } from 'yaml';
import { ClusterClient } from '../../../src/features/servers/runtimes/kubernetes/cluster-client.ts';
import { openCredentials } from '../../../src/features/servers/runtimes/kubernetes/credentials.ts';
import { IS_FULL_LENGTH } from '../full-length.ts';
import { EXECUTABLE } from '../program.ts';

const LAB = resolve(import.meta.dir, '../../../.ci/kubernetes-lab/lab');
const DOCKERFILE = resolve(import.meta.dir, '../../../Dockerfile');
const CACHE = process.env.LAB_CACHE ?? join(homedir(), '.cache/muster-kubernetes-lab');
/** Muster's image, with a tag other than latest, which the kubelet would pull. */
export const IMAGE = 'muster-test:1';
export const NAMESPACE = 'games';
const USER_ID = 10_001;
/** Networks that labs may have. */
const NETS = 255;
const COMMANDS = 'sh cat dd echo env head id kill ls nc printf ps rm seq sleep touch wc yes';

/** Why there is no cluster to try; undefined if one can be started. */
export function reasonWithoutLab(): string | undefined {
  if (!IS_FULL_LENGTH) return 'only a run at full length tries it';
  if (process.getuid?.() !== 0) return 'the cluster needs root';
  if (!existsSync(join(CACHE, 'built/bin/kube-proxy'))) return 'run ".ci/kubernetes-lab/lab build"';
  return EXECUTABLE === undefined ? 'MUSTER_TEST_EXECUTABLE names no executable' : undefined;
}

/** A real cluster of two nodes on this machine, with Muster's image. Nothing of it is left when disposed of. */
export interface Lab extends AsyncDisposable {
  /** A kubeconfig with the rights of a runtime. */
  kubeconfig: string;
  /** A kubeconfig with all rights. */
  operator_kubeconfig: string;
  /** The directory of kubectl. */
  programs: string;
  client: ClusterClient;
  /** The address of this machine for pods. */
  host: string;
  /** The nodes' addresses. */
  node_address: RegExp;
  /** Runs a command of the lab. Returns what it prints. */
  run(...args: string[]): Promise<string>;
}

/** Starts a cluster. Takes half a minute, or minutes on a busy machine. */
export async function startLab(): Promise<Lab> {
  await using opened = new AsyncDisposableStack();
  // Containers do not run on an overlay, which the folder for temporary files may be on.
  const directory = await mkdtemp(join(tmpdir(), 'muster-lab-'));
  opened.defer(() => rm(directory, { recursive: true, force: true }));
  const net = findFreeNet();
  const LAB_DIR = join(realpathSync(directory), 'lab');
  const run = async (...args: string[]): Promise<string> => {
    const env = { ...process.env, LAB_DIR, LAB_CACHE: CACHE, LAB_NET: net };
    const child = Bun.spawn([LAB, ...args], { env, stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' });
    const [out, err] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
    if ((await child.exited) !== 0) throw new Error(`lab ${args.join(' ')} failed: ${err}`);
    return out;
  };
  opened.defer(() => run('down').then(() => {}));
  await run('up', '--nodes', '2');
  const rootfs = join(directory, 'rootfs');
  await makeRootfs(rootfs);
  await run('image', IMAGE, rootfs, JSON.stringify(await readImageConfig()));
  await rm(rootfs, { recursive: true });
  const token = (await run('token', NAMESPACE, 'muster')).trim();
  const kubeconfig = join(directory, 'kubeconfig');
  const operator_kubeconfig = join(LAB_DIR, 'admin.kubeconfig');
  await Bun.write(kubeconfig, await withToken(operator_kubeconfig, token));
  const everything = opened.move();
  return {
    kubeconfig,
    operator_kubeconfig,
    programs: join(CACHE, 'built/root/usr/bin'),
    run,
    host: `${net}.253`,
    node_address: new RegExp(`^${net.replaceAll('.', '[.]')}[.][12]$`),
    client: new ClusterClient(openCredentials(kubeconfig)),
    [Symbol.asyncDispose]: () => everything.disposeAsync(),
  };
}

/** Returns the first bytes of a network that no lab on this machine has. */
function findFreeNet(): string {
  const addresses = Object.values(networkInterfaces()).flatMap((of_link = []) => of_link.map(({ address }) => address));
  const nets = Array.from({ length: NETS }, (_, index) => `10.77.${index}`);
  const free = nets.filter((net) => !addresses.some((address) => address.startsWith(`${net}.`)));
  const net = free[Math.floor(Math.random() * free.length)];
  if (net === undefined) throw new Error('all networks of labs are in use');
  return net;
}

/** Replaces the administrator of a kubeconfig by a token. */
async function withToken(file: string, token: string): Promise<string> {
  const config = parse(await Bun.file(file).text());
  config.contexts[0].context.namespace = NAMESPACE;
  for (const one of config.users) one.user = { token };
  return JSON.stringify(config);
}

/** Returns the configuration of the published image, whose program is in another place. */
async function readImageConfig() {
  const text = await Bun.file(DOCKERFILE).text();
  const read = (name: string) => {
    const value = new RegExp(`^${name} (.+)$`, 'm').exec(text)?.[1];
    if (value === undefined) throw new Error(`the Dockerfile has no ${name}`);
    return value;
  };
  return {
    Entrypoint: ['/usr/local/bin/muster'],
    Env: ['PATH=/usr/local/bin:/bin', ...read('ENV').split(' ')],
    User: String(USER_ID),
    WorkingDir: read('VOLUME'),
    StopSignal: read('STOPSIGNAL'),
  };
}

/** Muster's executable with the libraries that it needs, and a shell. */
async function makeRootfs(root: string): Promise<void> {
  const busybox = Bun.which('busybox');
  if (busybox === null) throw new Error('there is no busybox');
  const program = resolve(EXECUTABLE ?? '');
  await copy(program, join(root, 'usr/local/bin/muster'));
  for (const [library = ''] of (await Bun.$`ldd ${program}`.text()).matchAll(/\/\S+/g)) {
    await copy(library, join(root, library));
  }
  await copy(busybox, join(root, 'bin/busybox'));
  for (const command of COMMANDS.split(' ')) await symlink('busybox', join(root, 'bin', command));
  for (const folder of ['build', 'output', 'tmp', 'proc', 'dev', 'sys', 'etc']) {
    await mkdir(join(root, folder), { recursive: true, mode: 0o755 });
  }
  await mkdir(join(root, 'data'), { mode: 0o711 });
  await chown(join(root, 'data'), USER_ID, USER_ID);
}

async function copy(from: string, to: string): Promise<void> {
  await mkdir(dirname(to), { recursive: true, mode: 0o755 });
  await copyFile(from, to);
  await chmod(to, 0o755);
}
