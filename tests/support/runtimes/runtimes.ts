import { chmod, mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { UnpackedBuild } from '../../../src/features/builds/builds.ts';
import { combineRuntimes } from '../../../src/features/servers/runtimes/combined-runtime.ts';
import type { IsolationSetting } from '../../../src/features/servers/runtimes/isolation.ts';
import { readIdentity } from '../../../src/features/servers/runtimes/process/identity.ts';
import { openProcessRuntime } from '../../../src/features/servers/runtimes/process/process-runtime.ts';
import type {
  Identity,
  Observation,
  Runtime,
  ServerHandle,
  ServerResources,
  StartOrder,
} from '../../../src/features/servers/runtimes/runtime.ts';
import { makeDataDirectory } from '../service.ts';
import { waitFor } from '../wait.ts';
import { makeImage, openContainers, WITHOUT_CONTAINERS } from './containers.ts';
import { createSlowRuntime } from './slow-runtime.ts';

export const IS_ROOT = process.getuid?.() === 0;
/** The address at which players reach the servers of a test's runtime. */
export const HOST = 'play.example.com';

/** The limit of a disk measurement that counts everything. */
export const NO_DISK_LIMIT = { bytes: Number.MAX_SAFE_INTEGER, files: Number.MAX_SAFE_INTEGER };

const OUTPUT_BYTES_MAX = 1024 ** 2;

/** A kind of runtime, as it is opened over a directory. */
export interface RuntimeKind {
  name: string;
  /** Why this machine cannot try it. */
  reason_without?: string | undefined;
  open(directory: string): Promise<Runtime>;
  /** Makes a build that runs a shell script. By default an archive. */
  makeBuild?(directory: string, script: string): Promise<UnpackedBuild>;
  /** How it reports a program that cannot be run. By default the status of shells, with the name of the program. */
  missing_program?: { exit_code: number; sentence: RegExp };
  /** What its servers' host equals. By default the host of the tests. */
  readonly host?: string;
  /** How many servers get a signal during their start, where starts are slow. By default 20. */
  signals?: number;
  /** Whether the last output of a server is complete only after a kill, as the service reads it. */
  copies_output?: boolean;
  /** What its servers may use, unless a test says so. By default a core and 256 MiB. */
  resources?: ServerResources;
}

interface ProcessOptions {
  /** What servers may not read. By default the directory of the runtime. */
  data_directory?: string;
  isolation?: IsolationSetting;
}

export const processes =
  (has_separate_users: boolean, options: ProcessOptions = {}) =>
  async (directory: string) => {
    const folders = { directory: join(directory, 'servers'), programs_directory: join(directory, 'programs') };
    for (const folder of Object.values(folders)) await mkdir(folder, { recursive: true, mode: 0o711 });
    return await openProcessRuntime({
      ...folders,
      data_directory: directory,
      host: HOST,
      has_separate_users,
      isolation: 'on',
      ...options,
    });
  };

/** Plain processes: each server as a user of its own, which needs root, and all as the user of the tests. */
const OWN_USER: RuntimeKind = { name: 'process', open: processes(IS_ROOT) };
const SHARED_USER: RuntimeKind = { name: 'process, all as one user', open: processes(false) };
export const PROCESS_RUNTIMES: [RuntimeKind, ...RuntimeKind[]] = IS_ROOT ? [OWN_USER, SHARED_USER] : [OWN_USER];

/** The address at which servers of a test's runtime reach the service, which does not run. */
const API_URL = 'http://127.0.0.1:8080';

/** Containers, by an OCI runtime of this machine. */
export const CONTAINER_RUNTIME: RuntimeKind = {
  name: 'container',
  reason_without: WITHOUT_CONTAINERS,
  open: (directory) => openContainers(directory, { host: HOST, api_url: API_URL }),
  makeBuild: makeImage,
};

/** Processes and containers in one. */
export const COMBINED_RUNTIME: RuntimeKind = {
  name: 'combined',
  open: async (directory) =>
    combineRuntimes([await OWN_USER.open(directory), await CONTAINER_RUNTIME.open(directory)], { emit() {} }),
};

/** All runtimes. The last one answers like an engine on another machine. */
export const RUNTIMES: RuntimeKind[] = [
  ...PROCESS_RUNTIMES,
  CONTAINER_RUNTIME,
  { name: 'slow', open: async (directory) => createSlowRuntime(await OWN_USER.open(directory)) },
];

/** A server that has been started. */
export interface StartedServer extends ServerHandle {
  identity: Identity;
}

/** A runtime with a directory of its own. Disposing of it removes everything that it started. */
export interface TestRuntime extends AsyncDisposable {
  directory: string;
  runtime: Runtime;
  /** Opens another runtime over the same directory, as after a restart of the service. */
  reopen(): Promise<Runtime>;
  /** Returns the order to start a shell script. */
  orderOf(script: string, order?: Partial<StartOrder>): Promise<StartOrder>;
  /** Starts a server and waits until it is not pending. */
  start(order: StartOrder, by?: Runtime): Promise<StartedServer>;
  /** Starts a shell script as a server. */
  run(script: string, order?: Partial<StartOrder>): Promise<StartedServer>;
  /** Runs a shell script as a server until it ends, and removes the server. Returns what it wrote to both streams. */
  runOnce(script: string, order?: Partial<StartOrder>): Promise<string>;
  /** Returns the output of a server so far. */
  output(server: ServerHandle, stream?: 'std_out' | 'std_err'): Promise<string>;
  /** Returns the processor time that a server has used, in milliseconds. */
  readProcessorTime(server: ServerHandle): Promise<number>;
  /** Returns the observation of a server, by its own runtime or another. */
  observe(server: ServerHandle, by?: Runtime): Promise<Observation>;
  /** Asks a server to end, as soon as it can be asked. */
  stop(server: ServerHandle, by?: Runtime): Promise<void>;
  /** Kills a server, by its own runtime or another. Fails if a process of it is left. */
  kill(server: ServerHandle, by?: Runtime): Promise<void>;
  /** Kills a server and removes its files. */
  remove(server: ServerHandle, by?: Runtime): Promise<void>;
  /** Kills all servers that it has started, and removes their files. */
  removeAll(): Promise<void>;
  /** Waits until a server has ended. Returns how it ended. */
  waitForEnd(server: ServerHandle, by?: Runtime): Promise<Extract<Observation, { is: 'ended' }>>;
}

/** Opens a runtime of a test's own. */
export async function openTestRuntime(kind: RuntimeKind): Promise<TestRuntime> {
  const { open, makeBuild = makeArchive, resources, copies_output = false } = kind;
  const directory = await makeDataDirectory();
  const runtime = await open(directory);
  const started = new Map<string, ServerHandle>();

  async function output(server: ServerHandle, stream: 'std_out' | 'std_err' = 'std_out'): Promise<string> {
    const all = { from: undefined, bytes_max: OUTPUT_BYTES_MAX, backlog_bytes_max: OUTPUT_BYTES_MAX };
    const { bytes } = await runtime.readOutput(server, stream, all);
    return Buffer.from(bytes).toString();
  }

  const waitForEnd: TestRuntime['waitForEnd'] = async (server, by = runtime) => {
    const end = await waitFor(async () => {
      const seen = await observe(server, by);
      return seen.is === 'ended' && seen;
    }, 'the server to end');
    if (copies_output) await by.kill([server]);
    return end;
  };

  async function observe(server: ServerHandle, by = runtime): Promise<Observation> {
    const seen = (await by.observe([server])).get(server.server_id);
    if (!seen) throw new Error('the runtime returned no observation of the server');
    return seen;
  }

  async function start(order: StartOrder, by = runtime): Promise<StartedServer> {
    const { server_id } = order;
    // Before it is started: a failed start may leave something too.
    started.set(server_id, { server_id, identity: undefined });
    const { identity } = await by.start(order);
    const server = { server_id, identity };
    started.set(server_id, server);
    await waitFor(async () => (await observe(server, by)).is !== 'pending', 'the server to be started');
    return server;
  }

  async function kill(server: ServerHandle, by = runtime): Promise<void> {
    if (!(await by.kill([server])).has(server.server_id)) throw new Error('a process or a file of the server is left');
  }

  async function remove(server: ServerHandle, by = runtime): Promise<void> {
    await kill(server, by);
    await by.remove(server.server_id);
  }

  const ordered = async (script: string, order: Partial<StartOrder> = {}): Promise<StartOrder> =>
    makeOrder(order.build ?? (await makeBuild(directory, script)), { ...(resources && { resources }), ...order });

  async function removeAll(): Promise<void> {
    const servers = [...started.values()];
    started.clear();
    // As a service does, which tries again: a pod may end while it is killed.
    const isGone = async (server: ServerHandle) => (await runtime.kill([server])).has(server.server_id);
    await Promise.all(servers.map((server) => waitFor(() => isGone(server), 'a server to be removed completely')));
    await Promise.all(servers.map(({ server_id }) => runtime.remove(server_id)));
  }

  return {
    directory,
    runtime,
    reopen: () => open(directory),
    orderOf: ordered,
    start,
    run: async (script, order) => await start(await ordered(script, order)),
    async runOnce(script, order) {
      const server = await start(await ordered(script, order));
      await waitForEnd(server);
      const text = (await output(server)) + (await output(server, 'std_err'));
      await remove(server);
      return text;
    },
    async readProcessorTime(server) {
      return (await runtime.readUsage?.([server]))?.get(server.server_id)?.cpu_ms ?? 0;
    },
    output,
    observe,
    stop: (server, by = runtime) => waitFor(() => by.stop(server), 'the server to be asked').then(() => {}),
    kill,
    remove,
    removeAll,
    waitForEnd,
    async [Symbol.asyncDispose]() {
      await removeAll();
      await rm(directory, { recursive: true, force: true });
    },
  };
}

/** A shell script as an unpacked archive. */
async function makeArchive(directory: string, script: string): Promise<UnpackedBuild> {
  const build = join(directory, 'builds', crypto.randomUUID());
  await mkdir(build, { recursive: true, mode: 0o755 });
  await Bun.write(join(build, 'run.sh'), script);
  await chmod(join(directory, 'builds'), 0o755);
  return {
    game_id: crypto.randomUUID(),
    kind: 'archive',
    sha256: undefined,
    directory: build,
    command: ['/bin/sh', 'run.sh'],
  };
}

function makeOrder(build: UnpackedBuild, order: Partial<StartOrder>): StartOrder {
  return {
    server_id: crypto.randomUUID(),
    build_id: Bun.randomUUIDv5(build.directory, 'url'),
    build,
    resources: { cpu: 1_000, memory: 256 },
    ports: {},
    arguments: [],
    environment: {},
    ...order,
  };
}

/** Returns the order to start a shell script by the process runtime. */
export async function orderOf(directory: string, script: string, order: Partial<StartOrder> = {}): Promise<StartOrder> {
  return makeOrder(order.build ?? (await makeArchive(directory, script)), order);
}

/** The first process of a server by the process runtime. */
export function pidOf({ identity }: ServerHandle): number {
  const first = readIdentity(identity);
  if (!first) throw new Error('the server has a first process');
  return first.pid;
}
