import { chmod, mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { createProcessRuntime } from '../../src/features/servers/runtimes/process.ts';
import type { Observation, Runtime, ServerHandle, StartOrder } from '../../src/features/servers/runtimes/runtime.ts';
import { makeDataDirectory } from './service.ts';
import { waitFor } from './wait.ts';

export const IS_ROOT = process.getuid?.() === 0;

/** Every runtime there is, as it is opened over a directory: one suite runs on all. */
export const RUNTIMES = [
  {
    name: 'process',
    open: async (directory: string): Promise<Runtime> => {
      const options = { directory: join(directory, 'servers'), programs_directory: join(directory, 'programs') };
      for (const folder of Object.values(options)) await mkdir(folder, { recursive: true, mode: 0o711 });
      return await createProcessRuntime(options);
    },
  },
] as const;

/** A runtime with a directory of its own. Nothing it started is left when disposed of. */
export interface TestRuntime extends AsyncDisposable {
  directory: string;
  runtime: Runtime;
  /** Another one over the same directory, as after a restart of ours. */
  again(): Promise<Runtime>;
  /** Starts a shell script as a server. */
  run(script: string, order?: Partial<StartOrder>): Promise<ServerHandle>;
  /** What a server has written so far. */
  output(server: ServerHandle, stream?: 'std_out' | 'std_err'): Promise<string>;
  /** What is seen of a server, by its own runtime or another. */
  observe(server: ServerHandle, by?: Runtime): Promise<Observation>;
  /** Ends a server and everything of it, by its own runtime or another. Fails when something of it is left. */
  kill(server: ServerHandle, by?: Runtime): Promise<void>;
  /** The same, and removes its files. */
  remove(server: ServerHandle, by?: Runtime): Promise<void>;
  /** Waits until a server has ended, and says how. */
  endOf(server: ServerHandle): Promise<Extract<Observation, { is: 'ended' }>>;
}

/** Opens a runtime of my own. */
export async function openTestRuntime({ open }: (typeof RUNTIMES)[number]): Promise<TestRuntime> {
  const directory = await makeDataDirectory();
  const runtime = await open(directory);
  const started = new Map<string, ServerHandle>();

  async function observe(server: ServerHandle, by = runtime): Promise<Observation> {
    const seen = (await by.observe([server])).get(server.server_id);
    if (!seen) throw new Error('nothing was said of the server');
    return seen;
  }

  async function kill(server: ServerHandle, by = runtime): Promise<void> {
    if (!(await by.kill([server])).has(server.server_id)) throw new Error('something of the server is left');
  }

  async function remove(server: ServerHandle, by = runtime): Promise<void> {
    await kill(server, by);
    await by.removeFiles(server.server_id);
  }

  return {
    directory,
    runtime,
    again: () => open(directory),
    async run(script, order) {
      const wanted = await orderOf(directory, script, order);
      const handle = { server_id: wanted.server_id, user_id: wanted.user_id };
      // Before it is started: a failed start may leave something too.
      started.set(wanted.server_id, { ...handle, process: undefined });
      const server = { ...handle, process: await runtime.start(wanted) };
      started.set(wanted.server_id, server);
      return server;
    },
    output: ({ server_id }, stream = 'std_out') => Bun.file(runtime.outputFile(server_id, stream)).text(),
    observe,
    kill,
    remove,
    endOf: (server) =>
      waitFor(async () => {
        const seen = await observe(server);
        return seen.is === 'ended' && seen;
      }, 'the server to end'),
    async [Symbol.asyncDispose]() {
      await Promise.all([...started.values()].map((server) => remove(server)));
      await rm(directory, { recursive: true, force: true });
    },
  };
}

/** All that a runtime needs to start a shell script. */
export async function orderOf(directory: string, script: string, order: Partial<StartOrder> = {}): Promise<StartOrder> {
  const build = join(directory, 'builds', crypto.randomUUID());
  await mkdir(build, { recursive: true, mode: 0o755 });
  await Bun.write(join(build, 'run.sh'), script);
  await chmod(join(directory, 'builds'), 0o755);
  return {
    server_id: crypto.randomUUID(),
    build: { kind: 'archive', directory: build, command: ['/bin/sh', 'run.sh'] },
    arguments: [],
    environment: {},
    user_id: undefined,
    ...order,
  };
}

let users = 0;

/** A user of its own for a server, as it has where we are root; none where we are not. */
export function nextUser(): number | undefined {
  users += 1;
  // Above those that services of other runs on this machine give out, and apart from other runs of these tests.
  return IS_ROOT ? 70_000 + (process.pid % 100_000) * 100 + users : undefined;
}
