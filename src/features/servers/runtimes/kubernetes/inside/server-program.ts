import { closeSync, openSync, statSync } from 'node:fs';
import { constants } from 'node:os';
import { join } from 'node:path';
import { countOutOfMemoryKills } from '../../../../../platform/cgroups.ts';
import { reapChild } from '../../../../../platform/libc.ts';
import { listProcesses, readStat, signalProcess } from '../../../../../platform/processes.ts';
import type { LogStream } from '../../../tables.ts';
import type { End, ServerOrder, Sizes } from '../pod-messages.ts';
import { POD_FOLDERS } from '../pod-names.ts';

const KILL_POLL_MS = 20;
const KILL_TIMEOUT_MS = 10_000;
const ALL_OTHERS = -1;
/** The kernel kills the server before its first process, which reports the end. A program that is missing is in the log. */
const ENTER = '{ echo 1000 >/proc/self/oom_score_adj; } 2>/dev/null; exec "$@"';
/** Where a container sees its own control group, in each version. */
export const OWN_GROUPS = ['/sys/fs/cgroup', '/sys/fs/cgroup/memory', '/sys/fs/cgroup/cpuacct'];

export const outputOf = (stream: LogStream): string => join(POD_FOLDERS.output, stream);
export const readSizes = (): Sizes => ({
  std_out: statSync(outputOf('std_out')).size,
  std_err: statSync(outputOf('std_err')).size,
});

/** The program of a server, of which this process is the first of the container. */
export class ServerProgram {
  readonly #child: Bun.Subprocess;
  #was_killed = false;
  /** How it ended; undefined while it runs. */
  end: End | undefined;
  /** Resolves when `end` is set. */
  readonly ended: Promise<void>;

  constructor(private readonly order: ServerOrder) {
    this.#child = spawn(order);
    this.ended = this.#child.exited.then(() => {
      this.end = this.#describeEnd();
    });
  }

  stop(): void {
    if (!this.end) signalProcess(this.#child.pid, 'SIGTERM');
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
      if (pid === this.#child.pid) continue;
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
    const is_short = exit_signal === 'SIGKILL' && countOutOfMemoryKills(OWN_GROUPS) > 0;
    const reason = `it exceeded its memory of ${this.order.memory} MB`;
    return { exit_code: null, exit_signal, ...(is_short && { reason }) };
  }

  #endingSignal(): NodeJS.Signals | null {
    const { signalCode } = this.#child;
    return typeof signalCode === 'number' ? null : signalCode;
  }
}

function spawn({ command, environment, is_script }: ServerOrder): Bun.Subprocess {
  const streams = [openSync(outputOf('std_out'), 'a', 0o600), openSync(outputOf('std_err'), 'a', 0o600)] as const;
  // Loads neither packages from the network nor an .env file of the build.
  const program = is_script ? [process.execPath, 'run', '--no-install', '--no-env-file', ...command] : command;
  const { work, build } = POD_FOLDERS;
  try {
    return Bun.spawn(['/bin/sh', '-c', ENTER, 'muster-server', ...program], {
      cwd: build,
      detached: true,
      stdio: ['ignore', ...streams],
      env: {
        PATH: '/usr/local/bin:/usr/bin:/bin',
        HOME: work,
        TMPDIR: work,
        ...environment,
        ...(is_script && { BUN_BE_BUN: '1' }),
      },
    });
  } finally {
    for (const stream of streams) closeSync(stream);
  }
}
