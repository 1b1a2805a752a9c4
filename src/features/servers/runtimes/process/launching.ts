import { closeSync, openSync, rmSync, statSync, writeFileSync } from 'node:fs';
import type { Allowed } from '../../../../platform/containment/landlock.ts';
import type { LaunchOrder } from '../../../../platform/containment/launcher.ts';
import { makeSeccompFilter } from '../../../../platform/containment/seccomp-filter.ts';
import { numbersIn } from '../../server-port-rules.ts';
import type { ServerPort } from '../../tables.ts';
import { createExitFile, underShim } from '../linux/exit-status.ts';
import { MARK } from '../linux/process-trees.ts';
import { type Isolation, PROCESSES_MAX, type StartOrder } from '../runtime.ts';
import type { ServerFolders } from './server-folders.ts';
import type { ServerGroups } from './server-groups.ts';
import { tcpNumbersOf } from './stray-ports.ts';
import { DEVICES, systemFilesExcept } from './system-files.ts';

/** Open files of a process of a server. */
const OPEN_FILES_MAX = 8_192;

interface LaunchingOptions {
  folders: ServerFolders;
  groups: ServerGroups;
  isolation: Isolation;
  /** Muster's own executable, as servers may run it. */
  own_program: string;
  /** The script that becomes a server. */
  launcher: string;
  /** The directory of which servers may read only their own parts. */
  data_directory: string;
}

interface Launch {
  order: StartOrder;
  environment: Record<string, string>;
  /** Undefined for the user of the service. */
  user_id: number | undefined;
  onExit: () => void;
}

/** Creates the function that spawns the first process of a server. */
export function createLaunching(options: LaunchingOptions) {
  const { folders, groups, isolation, own_program, launcher, data_directory } = options;

  function spawn({ order, environment, user_id, onExit }: Launch): Bun.Subprocess {
    const { server_id, build } = order;
    const command = underShim(commandOf(order, own_program));
    createExitFile(folders.exit(server_id));
    recordPortRules(folders.portRules(server_id), isolation);
    const output = [
      openSync(folders.output(server_id, 'std_out'), 'a', 0o600),
      openSync(folders.output(server_id, 'std_err'), 'a', 0o600),
      openSync(folders.exit(server_id), 'r+'),
    ] as const;
    // A session of its own: its group can be signalled as a whole, and a ctrl-C for the service does not reach it.
    const common = { detached: true, onExit };
    try {
      // Throws if the directory is missing, which the launcher could report only in the server's log.
      statSync(build.directory);
      if (isolation.level === 'off') {
        const user = user_id === undefined ? {} : { uid: user_id, gid: user_id };
        const env = environmentOf({ order, environment });
        return Bun.spawn(command, { ...common, ...user, cwd: build.directory, env, stdio: ['ignore', ...output] });
      }
      using input = openOrder(folders.order(server_id), makeOrder({ order, environment, user_id }, command));
      // The launcher runs as the user of the service, so it gets neither variables nor the directory of the server,
      // which could change what it does.
      const env = { BUN_BE_BUN: '1', [MARK]: server_id };
      return Bun.spawn([own_program, 'run', '--no-install', '--no-env-file', launcher], {
        ...common,
        cwd: '/',
        env,
        stdio: [input.file, ...output],
      });
    } finally {
      for (const file of output) closeSync(file);
    }
  }

  function makeOrder({ order, environment, user_id }: Omit<Launch, 'onExit'>, command: string[]): LaunchOrder {
    const { server_id, build, resources, ports } = order;
    const allowed: Allowed = {
      // They may be replaced while the service runs: /etc/resolv.conf may lead elsewhere after a change of the network.
      read: [...systemFilesExcept(data_directory), build.directory, own_program],
      write: [folders.work(server_id)],
      use: [...DEVICES, folders.output(server_id, 'std_out'), folders.output(server_id, 'std_err')],
      tcp_ports: Object.values(ports).flatMap(tcpPortsOf),
    };
    return {
      command,
      environment: environmentOf({ order, environment }),
      directory: build.directory,
      cgroup_directories: groups.create(server_id, resources),
      user_id,
      open_files_max: OPEN_FILES_MAX,
      processes_max: user_id === undefined ? undefined : PROCESSES_MAX,
      allowed: isolation.missing.includes('files') ? undefined : allowed,
      call_filter: isolation.missing.includes('system calls') ? undefined : callFilterOf(user_id),
    };
  }

  return spawn;
}

/**
 * Filters of system calls in base64, for servers that share the user of the service and for those that have their own.
 */
const CALL_FILTERS = { shared: writeCallFilter({ shares_user: true }), own: writeCallFilter({ shares_user: false }) };

const callFilterOf = (user_id: number | undefined): string => CALL_FILTERS[user_id === undefined ? 'shared' : 'own'];

function writeCallFilter({ shares_user }: { shares_user: boolean }): string {
  return makeSeccompFilter({ processor: process.arch === 'arm64' ? 'arm64' : 'x64', shares_user }).toBase64();
}

/** Records whether a server is started with rules of ports, because the next service may have another isolation. */
function recordPortRules(path: string, { level, missing }: Isolation): void {
  if (level === 'off' || missing.includes('files') || missing.includes('ports')) rmSync(path, { force: true });
  else writeFileSync(path, '');
}

/** Writes an order for its launcher only, and returns the open file, which has no name any more. */
function openOrder(path: string, order: LaunchOrder): { file: number } & Disposable {
  rmSync(path, { force: true });
  writeFileSync(path, JSON.stringify(order), { mode: 0o600, flag: 'wx' });
  const file = openSync(path, 'r');
  rmSync(path);
  return { file, [Symbol.dispose]: () => closeSync(file) };
}

function tcpPortsOf(port: ServerPort): number[] {
  const own = tcpNumbersOf(port);
  return own ? numbersIn(own) : [];
}

function environmentOf({ order: { server_id, build }, environment }: Pick<Launch, 'order' | 'environment'>) {
  return { ...environment, ...(build.kind === 'javascript' ? { BUN_BE_BUN: '1' } : {}), [MARK]: server_id };
}

function commandOf({ build, arguments: more }: StartOrder, own_program: string): string[] {
  const command = [...build.command, ...more];
  // Loads neither packages from the network nor an .env file of the build.
  return build.kind === 'javascript' ? [own_program, 'run', '--no-install', '--no-env-file', ...command] : command;
}
