import { closeSync, existsSync, mkdirSync, openSync, readFileSync, statSync } from 'node:fs';
import { chown, copyFile, link, mkdir, readdir, rename, rm, stat } from 'node:fs/promises';
import { constants } from 'node:os';
import { join } from 'node:path';
import { createPacer, forEachAtOnce } from '../../../platform/pacing.ts';
import {
  identifyProcess,
  isErrno,
  isRunning,
  type ProcessIdentity,
  readChildren,
  readOpenFiles,
  signalProcess,
} from '../../../platform/processes.ts';
import { findSocketsAt } from '../../../platform/tcp-ports.ts';
import type { LogStream } from '../tables.ts';
import { createProcessTrees, MARK } from './process-trees.ts';
import { createUsage } from './process-usage.ts';
import type { Observation, Runtime, ServerHandle, StartOrder } from './runtime.ts';

const SHELL = '/bin/sh';
const SWEEPS_MAX = 20;
const SWEEP_PAUSE_MS = 25;
/** Each is a process of its own, which takes about a millisecond to start. */
const KILLERS_AT_ONCE_MAX = 4;
/** What a killer is to kill may stop it first. */
const KILLER_TIMEOUT_MS = 1_000;

/**
 * Stands between us and the server, so that how it ended is known even if we were not there: waits for it and writes its
 * exit status to file descriptor 3. Signals for the group do nothing to it, and with an empty trap the server would
 * inherit that they are ignored. A shell that waits in the foreground cannot be woken: what `wait` says after a signal
 * differs from shell to shell.
 */
const SHIM = 'trap : TERM INT HUP; "$@" 3>&-; echo $? >&3';

interface ProcessRuntimeOptions {
  /** One folder for each server. */
  directory: string;
  /** Where a copy of our own executable may lie, for servers that cannot enter the place of ours. */
  programs_directory: string;
}

/**
 * Servers as plain processes of this machine: a script by our own executable, an archive by its command. Each in a
 * session of its own, with its output in files, so that it does not need us to go on.
 */
export async function createProcessRuntime({ directory, programs_directory }: ProcessRuntimeOptions): Promise<Runtime> {
  const bun = await findBun(programs_directory);
  const readTrees = createProcessTrees();
  const usage = createUsage();
  let tell = () => {};

  const folderOf = (server_id: string) => join(directory, server_id);
  const exitFile = (server_id: string) => join(folderOf(server_id), 'exit');
  const outputFile = (server_id: string, stream: LogStream) => join(folderOf(server_id), stream);

  async function observe(servers: readonly ServerHandle[]): Promise<Map<string, Observation>> {
    const pace = createPacer();
    const observed = new Map<string, Observation>();
    const unnoted: ServerHandle[] = [];
    for (const server of servers) {
      const { server_id, process: identity } = server;
      if (identity && isRunning(identity)) observed.set(server_id, { is: 'running', process: identity });
      else if (identity) observed.set(server_id, { is: 'ended', ...readExit(exitFile(server_id)) });
      else if (!existsSync(exitFile(server_id))) observed.set(server_id, { is: 'absent' });
      else unnoted.push(server);
      await pace();
    }
    // Between its start and our note of it we may have been killed: then it is found by its traces.
    for (const [server_id, tree] of await readTrees(unnoted)) {
      const leader = tree.find(({ pid, session }) => session === pid);
      const process = leader && identifyProcess(leader.pid);
      observed.set(server_id, process ? { is: 'running', process } : { is: 'ended', ...readExit(exitFile(server_id)) });
    }
    return observed;
  }

  async function start(order: StartOrder): Promise<ProcessIdentity> {
    const { server_id, build, user_id } = order;
    const seen = (await observe([{ server_id, process: undefined, user_id }])).get(server_id);
    if (seen?.is === 'running') return seen.process;
    const work = join(folderOf(server_id), 'work');
    mkdirSync(folderOf(server_id), { recursive: true, mode: 0o711 });
    await mkdir(work, { recursive: true, mode: 0o700 });
    if (user_id !== undefined) await chown(work, user_id, user_id);
    const command = commandOf(order, bun);
    const environment = { PATH: '/usr/local/bin:/usr/bin:/bin', HOME: work, TMPDIR: work, ...order.environment };
    const files = [
      openSync(outputFile(server_id, 'std_out'), 'a', 0o600),
      openSync(outputFile(server_id, 'std_err'), 'a', 0o600),
      openSync(exitFile(server_id), 'w', 0o600),
    ] as const;
    try {
      const child = Bun.spawn([SHELL, '-c', SHIM, 'muster-server', ...command], {
        cwd: build.directory,
        env: { ...environment, ...(build.kind === 'javascript' ? { BUN_BE_BUN: '1' } : {}), [MARK]: server_id },
        // A session of its own: its group can be signalled as a whole, and a ctrl-C at our terminal is not for it.
        detached: true,
        stdio: ['ignore', ...files],
        ...(user_id === undefined ? {} : { uid: user_id, gid: user_id }),
        onExit: () => tell(),
      });
      child.unref();
      return identifyProcess(child.pid) ?? { pid: child.pid, start_ticks: 0, boot_id: '' };
    } finally {
      for (const file of files) closeSync(file);
    }
  }

  /** Whether the shim has started the server: a signal before would end the shim, or nothing. */
  function hasStarted(server_id: string, shim: ProcessIdentity): boolean {
    const children = readChildren(shim.pid);
    // Until the child is the server it has the shim's exit file, and may have its traps too.
    const exit = join(server_id, 'exit');
    return !children || children.some((pid) => !readOpenFiles(pid).some((file) => file.endsWith(exit)));
  }

  async function kill(servers: readonly ServerHandle[]): Promise<Set<string>> {
    const pace = createPacer();
    // Read while parents run: a child that hides everything is known by its parent only.
    await readTrees(servers);
    for (const { process: identity } of servers) {
      if (identity && isRunning(identity)) signalProcess(-identity.pid, 'SIGKILL');
      await pace();
    }
    const user_ids = servers.flatMap(({ user_id }) => user_id ?? []);
    await forEachAtOnce(user_ids, KILLERS_AT_ONCE_MAX, killAllOf);
    let left = servers;
    for (let sweep = 0; sweep < SWEEPS_MAX && left.length > 0; sweep += 1) {
      // What left the group is found by its traces; what was being born meanwhile, in the next sweep.
      if (sweep > 0) await Bun.sleep(SWEEP_PAUSE_MS);
      const trees = await readTrees(left);
      left = left.filter(({ server_id }) => trees.get(server_id)?.length !== 0);
      for (const { pid } of left.flatMap(({ server_id }) => trees.get(server_id) ?? [])) {
        signalProcess(pid, 'SIGKILL');
        await pace();
      }
    }
    const left_ids = new Set(left.map(({ server_id }) => server_id));
    return new Set(servers.flatMap(({ server_id }) => (left_ids.has(server_id) ? [] : server_id)));
  }

  return {
    kinds: ['archive', 'javascript'],
    start,
    observe,
    kill,
    outputFile,
    stop({ server_id, process: identity }) {
      if (!identity || !isRunning(identity)) return true;
      if (!hasStarted(server_id, identity)) return false;
      signalProcess(-identity.pid, 'SIGTERM');
      return true;
    },
    async readUsage(servers) {
      return usage.add(await readTrees(servers));
    },
    async findHolders(servers, port) {
      const sockets = findSocketsAt(port);
      const holders = new Set<string>();
      for (const [server_id, tree] of await readTrees(servers)) {
        const files = tree.flatMap(({ pid }) => readOpenFiles(pid));
        if (files.some((file) => sockets.has(file))) holders.add(server_id);
      }
      return holders;
    },
    removeFiles: (server_id) => rm(folderOf(server_id), { recursive: true, force: true }),
    async list() {
      const ids = await readdir(directory);
      return ids.map((server_id) => ({
        server_id,
        process: undefined,
        user_id: ownerOf(join(folderOf(server_id), 'work')),
      }));
    },
    onChange(listener) {
      tell = listener;
    },
  };
}

/**
 * Kills everything of a user in one go: the kernel lets nothing be born meanwhile, whereas a process that ends as soon as
 * its successor is there may be in no list. Makes sure to run as that user, because anything else would kill everything.
 */
async function killAllOf(user_id: number): Promise<void> {
  try {
    const killer = Bun.spawn([SHELL, '-c', KILL_ALL, String(user_id)], {
      uid: user_id,
      gid: user_id,
      env: {},
      cwd: '/',
      stdio: ['ignore', 'ignore', 'ignore'],
      timeout: KILLER_TIMEOUT_MS,
      killSignal: 'SIGKILL',
    });
    await killer.exited;
  } catch (error) {
    // The user or the machine has no room for one more process: there is some when those that are listed have been killed.
    if (!isErrno(error, 'EAGAIN')) throw error;
  }
}

const KILL_ALL =
  'while read -r name user rest; do [ "$name" = Uid: ] && [ "$user" = "$0" ] && kill -s KILL -- -1; done </proc/self/status';

function commandOf({ build, arguments: more }: StartOrder, bun: string): string[] {
  const command = [...build.command, ...more];
  // Neither packages from the network nor an .env that happens to lie there.
  return build.kind === 'javascript' ? [bun, 'run', '--no-install', '--no-env-file', ...command] : command;
}

/** The user that a folder belongs to; undefined when it is ours, or not there. */
function ownerOf(folder: string): number | undefined {
  const uid = statSync(folder, { throwIfNoEntry: false })?.uid;
  return uid === process.getuid?.() ? undefined : uid;
}

/** What the shim wrote: a shell says 128 + n of what was ended by signal n. */
function readExit(file: string): { exit_code: number | null; exit_signal: string | null } {
  const text = existsSync(file) ? readFileSync(file, 'utf8').trim() : '';
  if (text === '') return { exit_code: null, exit_signal: null };
  const status = Number(text);
  const signal = SIGNALS.get(status - 128);
  return signal ? { exit_code: null, exit_signal: signal } : { exit_code: status, exit_signal: null };
}

/** Of several names of one number the first is the usual one: SIGABRT, then SIGIOT. */
const SIGNALS = new Map(
  Object.entries(constants.signals)
    .reverse()
    .map(([name, number]) => [number, name]),
);

/** Our own executable. As root, another name of it in a place that other users can enter (npx installs into /root). */
async function findBun(programs_directory: string): Promise<string> {
  if (process.getuid?.() !== 0) return process.execPath;
  const { dev, ino, size, mtimeMs } = await stat(process.execPath);
  const file = join(programs_directory, `bun-${dev}-${ino}-${size}-${Math.floor(mtimeMs)}`);
  if (existsSync(file)) return file;
  await link(process.execPath, file).catch(async (error: unknown) => {
    // Another file system, or one without links.
    if (!isErrno(error, 'EXDEV') && !isErrno(error, 'EPERM')) throw error;
    await copyFile(process.execPath, `${file}.unfinished`);
    await rename(`${file}.unfinished`, file);
  });
  return file;
}
