import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { chown, copyFile, rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { Subprocess } from 'bun';
import { removeGroup } from '../../src/platform/system/cgroups.ts';
import { hasErrorCode } from '../../src/platform/system/system-errors.ts';
import { type Api, createApi } from './api.ts';
import { providePostgresCluster } from './database/postgres-cluster.ts';
import type { Network } from './network/network.ts';
import { claimTestPorts } from './network/test-ports.ts';
import { findProcessesOf } from './processes.ts';
import { makeDataDirectory } from './service.ts';
import { waitFor } from './wait.ts';

const ROOT = resolve(import.meta.dir, '../..');

/** The executable, if the run has the path of one. */
export const EXECUTABLE = process.env.MUSTER_TEST_EXECUTABLE;

/** Returns the command line of the source, or of the executable. */
export function commandOf(kind: 'source' | 'executable'): string[] {
  return kind === 'source' ? [process.execPath, join(ROOT, 'src/main.ts')] : [resolve(EXECUTABLE ?? 'dist/muster')];
}

/** The command line of the program: the executable if the run has one, else the source. */
export const COMMAND = commandOf(EXECUTABLE === undefined ? 'source' : 'executable');

type Signal = 'SIGINT' | 'SIGTERM' | 'SIGHUP' | 'SIGKILL';

/** The program as a process of its own, ready or not. */
interface Launched {
  pid: number;
  /** What it has printed so far. */
  output(): string;
  /** The exit code once it has ended; null if a signal ended it. */
  exited: Promise<number | null>;
  /** Sends a signal and waits for the end. Returns the exit code; null if the signal itself ended the process. */
  stop(signal: Signal): Promise<number | null>;
}

/** The program when it is ready. */
export interface Program extends Launched {
  url: string;
  api: Api;
  administrator_token: string;
}

interface ProgramOptions {
  /** The command line. */
  command?: string[];
  /** Settings by their names in the environment, in addition to those of the home. */
  settings?: Record<string, string>;
}

interface HomeOptions {
  /** The parent folder of the home. */
  parent?: string | undefined;
  /** The user of its programs; undefined for that of the tests. Only root can choose. */
  user_id?: number | undefined;
  /** Directories of control groups that its programs enter. */
  groups?: string[];
  /** The network of its programs, by default that of the tests. */
  network?: Network;
  /** Whether its embedded PostgreSQL has been initialized and migrated, for tests of anything but a first start. */
  has_prepared_database?: boolean;
}

/** A directory and a port for a program that can be started repeatedly. Disposing of it removes everything. */
export interface Home extends AsyncDisposable {
  data_directory: string;
  /** The address at which its programs answer. */
  url: string;
  /** The environment of a program of this home, with the tests' own PATH and HOME, for `npx`. */
  environment: Record<string, string>;
  /** Starts the program and waits until it is ready. Fails with its output if it ends instead. */
  start(options?: ProgramOptions): Promise<Program>;
  /** Starts the program and waits for nothing. */
  launch(options?: ProgramOptions): Launched;
  /** Runs the program until it ends by itself. */
  run(options?: ProgramOptions): Promise<{ exit_code: number; output: string }>;
  /** Returns the pids of its processes: the program, its PostgreSQL, its game servers. */
  processes(): number[];
}

/**
 * Makes a home in a temporary folder, or in the given one. Its programs get no PATH and nothing else of the tests'
 * environment.
 */
export async function makeHome(
  settings: Record<string, string> = {},
  { parent, user_id, groups = [], network, has_prepared_database = false }: HomeOptions = {},
): Promise<Home> {
  const data_directory = await makeDataDirectory(parent);
  if (has_prepared_database) await providePostgresCluster(join(data_directory, 'postgres'));
  if (user_id !== undefined) await chown(data_directory, user_id, user_id);
  const runnable = user_id === undefined ? COMMAND : await copyForOthers(COMMAND, data_directory);
  const grouped = groups.length > 0 ? ['/bin/sh', '-c', enter(groups), 'sh', ...runnable] : runnable;
  const own_command = network ? network.enter(grouped) : grouped;
  const user = user_id === undefined ? {} : { uid: user_id, gid: user_id };
  const children: Subprocess[] = [];
  const ports = await claimTestPorts();
  const own_settings = {
    MUSTER_DATA: data_directory,
    ...ports.settings,
    MUSTER_LOG: 'warn',
    // All tests come from one address.
    MUSTER_LIMITS_SCALE: '1000000',
    // Several at a time share a server with 100 connections.
    MUSTER_DATABASE_POOL: '5',
    ...(network && { MUSTER_HOST: '0.0.0.0' }),
    ...settings,
  };

  function spawn({ command = own_command, settings: more = {} }: ProgramOptions = {}) {
    const child = Bun.spawn(command, {
      cwd: data_directory,
      ...user,
      env: { ...own_settings, ...more },
      stdin: 'ignore',
      stdout: 'pipe',
      stderr: 'pipe',
    });
    children.push(child);
    const written: string[] = [];
    const reading = Promise.all([collect(child.stdout, written), collect(child.stderr, written)]);
    return { child, reading, ...describeLaunched(child, written) };
  }

  const url = `http://${network?.address ?? '127.0.0.1'}:${own_settings.MUSTER_PORT}`;
  const { PATH = '', HOME = '' } = process.env;
  return {
    data_directory,
    url,
    environment: { PATH, HOME, ...own_settings, MUSTER_LOG: 'info' },
    launch: spawn,
    async start(options) {
      const { child, pid, output, stop, exited } = spawn(options);
      await waitFor(async () => {
        if (child.exitCode !== null) throw new Error(`ended with ${child.exitCode}: ${output()}`);
        return /\bMuster \d+\.\d+\.\d+/.test(output()) && (await isReady(url));
      }, 'the program to be ready');
      const token = await Bun.file(join(data_directory, 'administrator-token')).text();
      return { url, api: createApi(url), pid, administrator_token: token.trim(), output, stop, exited };
    },
    async run(options) {
      const { child, reading, output } = spawn(options);
      const exit_code = await child.exited;
      await reading;
      return { exit_code, output: output() };
    },
    processes: () => findProcessesOf(data_directory),
    async [Symbol.asyncDispose]() {
      // The program hides its environment, by which others are found, from tests that do not run as root.
      for (const child of children) child.kill('SIGKILL');
      const postgres_directory = join(data_directory, 'postgres');
      await waitFor(() => {
        // PostgreSQL releases its shared memory on an immediate shutdown, but not when it is killed.
        const postgres = findProcessesOf(postgres_directory);
        const left = findProcessesOf(data_directory);
        for (const pid of left) endProcess(pid, postgres.includes(pid) ? 'SIGQUIT' : 'SIGKILL');
        return left.length === 0;
      }, 'all processes to end');
      await removeGroupsOf(data_directory);
      await rm(`${data_directory}-program`, { force: true });
      await rm(data_directory, { recursive: true, force: true });
      ports[Symbol.dispose]();
    },
  };
}

/** Returns a script that enters control groups, then runs a command. */
function enter(groups: string[]): string {
  return `for group in ${groups.join(' ')}; do echo $$ >$group/cgroup.procs || exit; done; exec "$@"`;
}

/** Copies the executable of a command to where users other than that of the tests can run it. */
async function copyForOthers([executable = '', ...rest]: string[], directory: string): Promise<string[]> {
  const copy = `${directory}-program`;
  await copyFile(executable, copy);
  return [copy, ...rest];
}

/** Removes the control groups of servers that were killed with the program. The last of their processes may still end. */
async function removeGroupsOf(data_directory: string): Promise<void> {
  const servers = join(data_directory, 'servers');
  for (const server_id of existsSync(servers) ? readdirSync(servers) : []) {
    const record = join(servers, server_id, 'group');
    if (!existsSync(record)) continue;
    const { directories } = JSON.parse(readFileSync(record, 'utf8'));
    await waitFor(async () => {
      try {
        await removeGroup(directories);
        return true;
      } catch (error) {
        if (hasErrorCode(error, 'EBUSY')) return false;
        throw error;
      }
    }, `the control group of ${server_id} to be empty`);
  }
}

function describeLaunched(child: Subprocess, written: string[]): Launched {
  return {
    pid: child.pid,
    output: () => written.join(''),
    exited: child.exited.then(() => child.exitCode),
    async stop(signal) {
      child.kill(signal);
      await child.exited;
      return child.exitCode;
    },
  };
}

function endProcess(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // It has already ended.
  }
}

async function collect(stream: ReadableStream<Uint8Array>, written: string[]): Promise<void> {
  const decoder = new TextDecoder();
  for await (const bytes of stream) written.push(decoder.decode(bytes, { stream: true }));
}

/** Waits until the service at an address is ready. */
export async function waitUntilReady(url: string): Promise<void> {
  await waitFor(() => isReady(url), 'the service to be ready');
}

async function isReady(url: string): Promise<boolean> {
  return await fetch(`${url}/health/ready`).then(
    ({ ok }) => ok,
    () => false,
  );
}
