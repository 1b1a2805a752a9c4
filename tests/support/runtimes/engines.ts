import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { Type } from '@sinclair/typebox';
import { EngineClient, EngineRefusal } from '../../../src/features/servers/runtimes/engine/engine-client.ts';
import {
  type EngineRuntimeOptions,
  openEngineRuntime,
} from '../../../src/features/servers/runtimes/engine/engine-runtime.ts';
import { waitFor } from '../wait.ts';
import { makeImage, WITHOUT_CONTAINERS } from './containers.ts';
import { HOST, type RuntimeKind } from './runtimes.ts';

export type EngineName = 'docker' | 'podman';
export const ENGINES: EngineName[] = ['docker', 'podman'];

/** The programs that each engine needs, with the Debian packages of those that may be missing. */
const PROGRAMS = {
  docker: { dockerd: 'docker.io', 'docker-init': 'docker.io', iptables: 'iptables' },
  podman: { podman: 'podman', conmon: 'conmon', iptables: 'iptables' },
};

/** Podman's init, which is on no path. */
const CATATONIT = '/usr/libexec/podman/catatonit';

/** Why an engine cannot be tried here; undefined if it can. */
export function reasonWithoutEngine(name: EngineName): string | undefined {
  if (WITHOUT_CONTAINERS !== undefined) return WITHOUT_CONTAINERS;
  const missing = Object.entries(PROGRAMS[name]).find(([program]) => Bun.which(program) === null);
  if (missing) return `install ${missing[1]}`;
  return name === 'podman' && !existsSync(CATATONIT) ? 'install catatonit' : undefined;
}

/** An engine of the tests' own. Nothing of it is left when disposed of. */
export interface TestEngine extends AsyncDisposable {
  name: EngineName;
  /** The directory of its files. */
  directory: string;
  socket: string;
  client: EngineClient;
  /** Stops the engine, as an upgrade of it does. Its containers may continue. */
  stop(): Promise<void>;
  start(): Promise<void>;
}

/** Starts an engine over a directory of its own. Only one test file may do so: engines change the rules of the machine. */
export async function startEngine(name: EngineName): Promise<TestEngine> {
  const directory = await mkdtemp(join(tmpdir(), `muster-${name}-`));
  const socket = join(directory, 'socket');
  const rules = await Bun.$`iptables-save`.quiet().text();
  const links = new Set(listLinks());
  const client = new EngineClient(socket);
  const log = join(directory, 'log');
  let engine: Bun.Subprocess | undefined;

  async function start(): Promise<void> {
    await rm(socket, { force: true });
    engine = Bun.spawn(commandOf(name, directory, socket), {
      // Podman's monitor writes a file to its directory when a container exceeds its memory.
      cwd: directory,
      stdin: 'ignore',
      stdout: Bun.file(log),
      stderr: Bun.file(log),
    });
    const answers = async () => {
      if (engine?.exitCode !== null) throw new Error(`${name} ended: ${await Bun.file(log).text()}`);
      return await client.call({ method: 'GET', path: '/_ping' }).catch(() => false);
    };
    await waitFor(answers, `${name} to answer`);
  }

  async function stop(): Promise<void> {
    engine?.kill('SIGTERM');
    await engine?.exited;
  }

  await start();
  return {
    name,
    directory,
    socket,
    client,
    start,
    stop,
    async [Symbol.asyncDispose]() {
      // A failed test leaves its containers, which go on without their engine.
      const all = await readFrom<{ Id: string }[]>(client, '/containers/json?all=true');
      for (const { Id } of all) await client.call({ method: 'DELETE', path: `/containers/${Id}?force=true` });
      await stop();
      await Bun.$`iptables-restore < ${new Response(rules)}`.quiet();
      for (const link of listLinks()) if (!links.has(link)) await Bun.$`ip link delete ${link}`.quiet();
      for (const mount of listMounts(directory)) await Bun.$`umount ${mount}`.quiet();
      await rm(directory, { recursive: true, force: true });
    },
  };
}

/** Lists the network devices of this machine with names that engines give. Other tests make others. */
export const listLinks = () =>
  readdirSync('/sys/class/net').filter((name) => /^(br-|veth|cni-|podman|docker)/.test(name));

/** Lists what is mounted below a directory, the last first. */
function listMounts(directory: string): string[] {
  const mounts = readFileSync('/proc/mounts', 'utf8')
    .split('\n')
    .map((line) => line.split(' ')[1] ?? '');
  return mounts.filter((mount) => mount.startsWith(`${directory}/`)).toReversed();
}

function commandOf(name: EngineName, directory: string, socket: string): string[] {
  const folder = (one: string) => join(directory, one);
  if (name === 'docker') {
    return [
      'dockerd',
      '--data-root',
      folder('root'),
      '--exec-root',
      folder('exec'),
      '--pidfile',
      folder('pid'),
      // Containers go on while the engine is stopped, as docs/containers.md recommends.
      '--host',
      `unix://${socket}`,
      '--storage-driver',
      'vfs',
      '--bridge',
      'none',
      '--live-restore',
    ];
  }
  return [
    'podman',
    '--root',
    folder('root'),
    '--runroot',
    folder('run'),
    '--tmpdir',
    folder('tmp'),
    '--storage-driver',
    'vfs',
    '--cgroup-manager',
    'cgroupfs',
    '--events-backend',
    'file',
    'system',
    'service',
    '--time',
    '0',
    `unix://${socket}`,
  ];
}

/** The options of a runtime over a directory, without its engine. */
export function optionsIn(directory: string): Omit<EngineRuntimeOptions, 'client'> {
  return {
    directory: join(directory, 'engine'),
    node_id: basename(directory),
    host: HOST,
    api_url: 'http://127.0.0.1:8080',
    has_read_only_root: false,
    is_isolation_required: false,
  };
}

/** The runtime of an engine that is started later, as the suite of runtimes opens it. */
export function runtimeOf(
  name: EngineName,
  engine: () => TestEngine,
  changes: Partial<EngineRuntimeOptions> = {},
): RuntimeKind {
  return {
    name,
    async open(directory) {
      const options = optionsIn(directory);
      await mkdir(options.directory, { recursive: true, mode: 0o700 });
      return openEngineRuntime({ ...options, client: engine().client, ...changes });
    },
    makeBuild: makeImage,
    copies_output: true,
    ...(name === 'podman' && {
      missing_program: { exit_code: 1, sentence: /failed to exec pid1: (No such file|Permission)/ },
    }),
  };
}

/** What the tests look at of a container. */
interface Inspected {
  Image: string;
  State: { Running: boolean };
  Config: { Labels: Record<string, string> };
  HostConfig: { Privileged: boolean; Memory: number; PidMode: string; Binds?: string[]; Devices?: object[] };
  NetworkSettings: { Networks: Record<string, { IPAddress: string }> };
}

/** Reads what an engine describes. Podman fails to while a container ends, which takes long on a slow machine. */
async function readFrom<Answer>(client: EngineClient, path: string): Promise<Answer> {
  const shape = Type.Unsafe<Answer>(Type.Any());
  const read = () => client.read(shape, { method: 'GET', path }).catch(undefinedIfFailing);
  return await waitFor(read, `the engine to describe ${path}`);
}

function undefinedIfFailing(error: unknown): undefined {
  if (!(error instanceof EngineRefusal) || error.status < 500) throw error;
}

/** Returns how an engine describes the container of a server. */
export async function inspect({ client }: TestEngine, server_id: string): Promise<Inspected> {
  return await readFrom(client, `/containers/muster-${server_id}/json`);
}

/** Lists the containers, images and networks of an engine that a Muster made. */
export async function listLeftovers({ client }: TestEngine): Promise<string[]> {
  const kinds = ['/containers/json?all=true', '/images/json', '/networks'];
  const listed = kinds.map(async (path) => {
    const all = await readFrom<object[]>(client, path);
    return all.map((one) => `${path} ${JSON.stringify(one)}`);
  });
  return (await Promise.all(listed)).flat().filter((one) => one.includes('muster.machine'));
}
