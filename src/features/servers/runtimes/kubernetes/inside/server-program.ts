import { closeSync, existsSync, openSync, readFileSync, statSync, writeFileSync, writeSync } from 'node:fs';
import { constants } from 'node:os';
import { join } from 'node:path';
import { reapChild } from '../../../../../platform/system/libc.ts';
import { listProcesses, readStat, signalProcess } from '../../../../../platform/system/processes.ts';
import { hasErrorCode } from '../../../../../platform/system/system-errors.ts';
import type { LogStream } from '../../../tables.ts';
import { describeOutOfMemory } from '../../out-of-memory.ts';
import type { End, ServerOrder, Sizes } from '../pod-messages.ts';
import { POD_FOLDERS } from '../pod-names.ts';

const KILL_POLL_MS = 20;
const KILL_TIMEOUT_MS = 10_000;
const ALL_OTHERS = -1;
const SCORE_FILE = '/proc/self/oom_score_adj';
const PROGRAM_SCORE = '1000';
/** Sets the OOM score of the shell, which then becomes the program. */
const ENTER = '{ echo 1000 >/proc/self/oom_score_adj; } 2>/dev/null; exec "$@"';
/** Where a container sees its own control group, in each version. */
export const OWN_GROUPS = ['/sys/fs/cgroup', '/sys/fs/cgroup/memory', '/sys/fs/cgroup/cpuacct'];

export const outputOf = (stream: LogStream): string => join(POD_FOLDERS.output, stream);
export const readSizes = (): Sizes => ({
  std_out: statSync(outputOf('std_out')).size,
  std_err: statSync(outputOf('std_err')).size,
});

/** The program of a server. This process is the first process of its container. */
export class ServerProgram {
  readonly #child: Bun.Subprocess | Unstarted;
  #was_killed = false;
  /** How it ended; undefined while it runs. */
  end: End | undefined;
  /** Resolves when `end` is set. */
  readonly ended: Promise<void>;

  constructor(private readonly order: ServerOrder) {
    this.#child = start(order);
    this.ended = this.#child.exited.then(() => {
      this.end = this.#describeEnd();
    });
  }

  stop(): void {
    if (!this.end && 'pid' in this.#child) signalProcess(this.#child.pid, 'SIGTERM');
  }

  /** Ends all processes of the container but the first. */
  async kill(): Promise<void> {
    this.#was_killed = true;
    for (const started = performance.now(); performance.now() - started < KILL_TIMEOUT_MS; ) {
      if (listProcesses().length === 1) return await this.ended;
      signalProcess(ALL_OTHERS, 'SIGKILL');
      await Bun.sleep(KILL_POLL_MS);
      this.removeEnded();
    }
    throw new Error('processes of the server survived SIGKILL');
  }

  /** Removes ended processes that lost their parent, which is a duty of the first process. */
  removeEnded(): void {
    for (const pid of listProcesses()) {
      // Bun waits for the program itself.
      if ('pid' in this.#child && pid === this.#child.pid) continue;
      const stat = readStat(pid);
      if (stat?.is_dead && stat.parent === process.pid) reapChild(pid);
    }
  }

  /** The exit code of the container, as shells and inits report it. */
  get container_code(): number {
    const signal = this.#endingSignal();
    return signal === null ? (this.#child.exitCode ?? 0) : 128 + constants.signals[signal];
  }

  #describeEnd(): End {
    if (this.#was_killed) return { exit_code: null, exit_signal: null };
    const exit_signal = this.#endingSignal();
    if (exit_signal === null) return { exit_code: this.#child.exitCode, exit_signal };
    if (exit_signal !== 'SIGKILL') return { exit_code: null, exit_signal };
    const reason = describeOutOfMemory({ directories: OWN_GROUPS, memory: this.order.memory, is_in_pod: true });
    return { exit_code: null, exit_signal, ...(reason !== undefined && { reason }) };
  }

  #endingSignal(): NodeJS.Signals | null {
    const { signalCode } = this.#child;
    return typeof signalCode === 'number' ? null : signalCode;
  }
}

/** A program that could not be started. */
interface Unstarted {
  exited: Promise<number>;
  exitCode: number;
  signalCode: null;
}

/** Starts the program of a server. If memory is short, the kernel kills it before this process, which reports the end. */
function start(order: ServerOrder): Bun.Subprocess | Unstarted {
  const streams = [openSync(outputOf('std_out'), 'a', 0o600), openSync(outputOf('std_err'), 'a', 0o600)] as const;
  try {
    return order.kind === 'image' ? startOfImage(order, streams) : startOfBuild(order, streams);
  } finally {
    for (const stream of streams) closeSync(stream);
  }
}

type Streams = readonly [std_out: number, std_err: number];

/** Starts a program of Muster's image, which has a shell. */
function startOfBuild({ kind, command, ...order }: ServerOrder, streams: Streams): Bun.Subprocess {
  const is_script = kind === 'script';
  // Loads neither packages from the network nor an .env file of the build.
  const program = is_script ? [process.execPath, 'run', '--no-install', '--no-env-file', ...command] : command;
  const environment = { ...order.environment, ...(is_script && { BUN_BE_BUN: '1' }) };
  return spawn(['/bin/sh', '-c', ENTER, 'muster-server', ...program], { ...order, environment }, streams);
}

/**
 * Starts the program of another image, which may have no shell. A missing program is reported in the log, in the words
 * of shells.
 */
function startOfImage(order: ServerOrder, streams: Streams): Bun.Subprocess | Unstarted {
  const { command, directory } = order;
  const own_score = readScore();
  try {
    if (!existsSync(directory)) throw new MissingDirectory();
    writeScore(PROGRAM_SCORE);
    return spawn(command, order, streams);
  } catch (cause) {
    const [exit_code, problem] = shellFailureOf(cause);
    const what = cause instanceof MissingDirectory ? directory : command[0];
    writeSync(streams[1], `${what}: ${problem}\n`);
    return { exited: Promise.resolve(exit_code), exitCode: exit_code, signalCode: null };
  } finally {
    writeScore(own_score);
  }
}

class MissingDirectory extends Error {}

/** Returns the exit code and the words with which a shell reports that a program could not be started. */
function shellFailureOf(cause: unknown): [exit_code: number, problem: string] {
  if (cause instanceof MissingDirectory) return [127, 'no such working directory'];
  if (hasErrorCode(cause, 'ENOENT')) return [127, 'not found'];
  if (hasErrorCode(cause, 'EACCES')) return [126, 'Permission denied'];
  if (hasErrorCode(cause, 'ENOEXEC')) return [126, 'Exec format error'];
  return [126, cause instanceof Error ? cause.message : String(cause)];
}

function spawn(
  command: string[],
  { directory, environment }: Pick<ServerOrder, 'directory' | 'environment'>,
  streams: Streams,
): Bun.Subprocess {
  return Bun.spawn(command, { cwd: directory, detached: true, stdio: ['ignore', ...streams], env: environment });
}

function readScore(): string {
  return readFileSync(SCORE_FILE, 'utf8');
}

/** Sets the OOM score of this process. Without the permission to set it, the kernel chooses by memory. */
function writeScore(score: string): void {
  try {
    writeFileSync(SCORE_FILE, score);
  } catch (cause) {
    if (!hasErrorCode(cause, 'EACCES') && !hasErrorCode(cause, 'EPERM')) throw cause;
  }
}
