import { closeSync, existsSync, mkdirSync, openSync, readFileSync } from 'node:fs';
import { chown, copyFile, link, mkdir, readdir, rename, rm, stat } from 'node:fs/promises';
import { constants } from 'node:os';
import { join } from 'node:path';
import {
  findProcessesByEnvironment,
  findProcessesByUser,
  identifyProcess,
  isErrno,
  isRunning,
  type ProcessIdentity,
  sessionOf,
  signalProcess,
} from '../../../platform/processes.ts';
import type { LogStream } from '../tables.ts';
import type { Observation, Runtime, ServerHandle, StartOrder } from './runtime.ts';

const SHELL = '/bin/sh';
const SWEEPS_MAX = 20;
const SWEEP_PAUSE_MS = 25;

/**
 * Stands between us and the server, so that how it ended is known even if we were not there: waits for it and writes its
 * exit status to file descriptor 3. Signals for the group do nothing to it, and with an empty trap the server would
 * inherit that they are ignored. A shell that waits in the foreground cannot be woken: what `wait` says after a signal
 * differs from shell to shell.
 */
const SHIM = 'trap : TERM INT HUP; "$@" 3>&-; echo $? >&3';

/** The variable by which a server's processes are found again, however they were started. */
const MARK = 'MUSTER_SERVER_ID';

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
  let tell = () => {};

  const folderOf = (server_id: string) => join(directory, server_id);
  const exitFile = (server_id: string) => join(folderOf(server_id), 'exit');
  const outputFile = (server_id: string, stream: LogStream) => join(folderOf(server_id), stream);

  /** Its processes by every trace they leave: the mark in the environment and, where each has its own, the user. */
  function findAll({ server_id, user_id }: Pick<ServerHandle, 'server_id' | 'user_id'>): number[] {
    const of_user = user_id === undefined ? [] : findProcessesByUser(user_id);
    return [...new Set([...findProcessesByEnvironment(`${MARK}=${server_id}`), ...of_user])];
  }

  function observe({ server_id, process: identity, user_id }: ServerHandle): Observation {
    if (identity && isRunning(identity)) return { is: 'running', process: identity };
    // Between its start and our note of it we may have been killed: then it is found by its mark.
    if (!identity && !existsSync(exitFile(server_id))) return { is: 'absent' };
    if (!identity) {
      const leader = findAll({ server_id, user_id }).find((pid) => sessionOf(pid) === pid);
      const found = leader === undefined ? undefined : identifyProcess(leader);
      if (found) return { is: 'running', process: found };
    }
    return { is: 'ended', ...readExit(exitFile(server_id)) };
  }

  async function start(order: StartOrder): Promise<ProcessIdentity> {
    const { server_id, build, user_id } = order;
    const seen = observe({ server_id, process: undefined, user_id });
    if (seen.is === 'running') return seen.process;
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

  async function kill(server: ServerHandle): Promise<void> {
    // One that is just dying has no environment any more: all that were seen are waited for.
    const doomed = [server.process, ...findAll(server).map(identifyProcess)];
    if (server.process && isRunning(server.process)) signalProcess(-server.process.pid, 'SIGKILL');
    if (server.user_id !== undefined) await killAllOf(server.user_id);
    // What left the group is found by its traces; what was being born meanwhile, in the next sweep.
    for (let sweep = 0; sweep < SWEEPS_MAX; sweep += 1) {
      const left = findAll(server);
      if (left.length === 0 && !doomed.some((one) => one && isRunning(one))) return;
      doomed.push(...left.map(identifyProcess));
      for (const pid of left) signalProcess(pid, 'SIGKILL');
      await Bun.sleep(SWEEP_PAUSE_MS);
    }
    throw new Error(`server ${server.server_id} has processes that do not die`);
  }

  return {
    kinds: ['archive', 'javascript'],
    start,
    observe,
    kill,
    outputFile,
    stop({ process: identity }) {
      if (identity && isRunning(identity)) signalProcess(-identity.pid, 'SIGTERM');
    },
    async remove(server) {
      await kill(server);
      await rm(folderOf(server.server_id), { recursive: true, force: true });
    },
    list: () => readdir(directory),
    onChange(listener) {
      tell = listener;
    },
  };
}

/**
 * Kills everything of a user in one go: the kernel lets nothing be born meanwhile, where whoever goes through a list may
 * never see what ends as soon as its successor is there. Only as that user, or all would be meant: it is made sure of.
 */
async function killAllOf(user_id: number): Promise<void> {
  const command = [SHELL, '-c', KILL_ALL, String(user_id)];
  await Bun.spawn(command, { uid: user_id, gid: user_id, env: {}, cwd: '/', stdio: ['ignore', 'ignore', 'ignore'] })
    .exited;
}

const KILL_ALL =
  'while read -r name user rest; do [ "$name" = Uid: ] && [ "$user" = "$0" ] && kill -s KILL -- -1; done </proc/self/status';

function commandOf({ build, arguments: more }: StartOrder, bun: string): string[] {
  const command = [...build.command, ...more];
  // Neither packages from the network nor an .env that happens to lie there.
  return build.kind === 'javascript' ? [bun, 'run', '--no-install', '--no-env-file', ...command] : command;
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
