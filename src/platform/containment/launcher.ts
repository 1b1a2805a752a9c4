import { ptr } from 'bun:ffi';
import { changeDirectory, closeFile, OPEN, openFile, readFile, writeFile } from './files.ts';
import { type Allowed, restrictByLandlock } from './landlock.ts';
import { filterCalls } from './seccomp.ts';
import { systemCall, trySystemCall } from './system-calls.ts';

/** How to run a program: what the launcher does before it becomes the program. */
export interface LaunchOrder {
  /** The path of the program, and its arguments. */
  command: string[];
  environment: Record<string, string>;
  /** The working directory. */
  directory: string;
  /** The directories of the control group to enter; none if it is not limited by one. */
  cgroup_directories: string[];
  /** The user, and the group with the same number; undefined to keep the service's user. */
  user_id: number | undefined;
  open_files_max: number;
  /** Processes and threads of the user; undefined if other programs run as the same user. */
  processes_max: number | undefined;
  /** Undefined to allow all files and ports. */
  allowed: Allowed | undefined;
  /** The filter of system calls in base64, as `makeSeccompFilter` makes it; undefined to allow all calls. */
  call_filter: string | undefined;
}

const [RLIMIT_CORE, RLIMIT_NPROC, RLIMIT_NOFILE] = [4, 6, 7];
const PR_SET_NO_NEW_PRIVS = 38;
const CLOSE_RANGE_CLOEXEC = 4;
const SIG_SETMASK = 2;
/** The size of struct sigaction and of its mask, as the kernel reads them. */
const [SIGNAL_ACTION_BYTES, SIGNAL_MASK_BYTES] = [32, 8];
const STDIN = 0;

/**
 * Becomes the program of an order, contained. Never returns: throws if it cannot become the program. The standard input
 * is replaced by /dev/null; the other open files up to `last_file` stay open, and all later ones are closed.
 */
export function launch(order: LaunchOrder, { last_file }: { last_file: number }): never {
  const { user_id, allowed } = order;
  for (const cgroup of order.cgroup_directories) writeFile(`${cgroup}/cgroup.procs`, '0');
  changeDirectory(order.directory);
  setLimit(RLIMIT_CORE, 0);
  setLimit(RLIMIT_NOFILE, order.open_files_max);
  if (order.processes_max !== undefined) setLimit(RLIMIT_NPROC, order.processes_max);
  const nothing = openFile('/dev/null', OPEN.read);
  systemCall('dup3', nothing, STDIN, 0);
  closeFile(nothing);
  systemCall('close_range', last_file + 1, 0xffffffff, CLOSE_RANGE_CLOEXEC);
  resetSignals();
  const program = argumentsOf(order);
  if (user_id !== undefined) becomeUser(user_id);
  systemCall('prctl', PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (allowed) restrictByLandlock(allowed);
  if (order.call_filter !== undefined) filterCalls(Uint8Array.fromBase64(order.call_filter));
  systemCall('execve', program.path, program.arguments, program.environment);
  throw new Error('a program that is executed does not return');
}

/** Sets the soft and the hard limit of a resource, but never above the present hard limit, which only a capability could raise. */
function setLimit(resource: number, wanted: number): void {
  const limits = new BigUint64Array(2);
  systemCall('prlimit64', 0, resource, 0, ptr(limits));
  const [, most = 0n] = limits;
  limits.fill(BigInt(wanted) < most ? BigInt(wanted) : most);
  systemCall('prlimit64', 0, resource, ptr(limits), 0);
}

/** Resets the actions and the mask of signals to their defaults, because the program would inherit those of Bun. */
function resetSignals(): void {
  const [, ignored = '0'] = /^SigIgn:\s*([0-9a-f]+)$/m.exec(readFile('/proc/self/status')) ?? [];
  const default_action = new Uint8Array(SIGNAL_ACTION_BYTES);
  for (const [index, bit] of [...BigInt(`0x${ignored}`).toString(2)].reverse().entries()) {
    if (bit === '1') trySystemCall('rt_sigaction', index + 1, ptr(default_action), 0, SIGNAL_MASK_BYTES);
  }
  systemCall('rt_sigprocmask', SIG_SETMASK, ptr(new Uint8Array(SIGNAL_MASK_BYTES)), 0, SIGNAL_MASK_BYTES);
}

function becomeUser(user_id: number): void {
  systemCall('setgroups', 0, 0);
  systemCall('setresgid', user_id, user_id, user_id);
  systemCall('setresuid', user_id, user_id, user_id);
}

/** The texts that execve(2) reads. They are referenced here, so that they stay in memory. */
const texts: Uint8Array[] = [];

/** Returns the addresses of what execve(2) takes. */
function argumentsOf({ command, environment }: LaunchOrder) {
  const [path = ''] = command;
  const entries = Object.entries(environment).map(([name, value]) => `${name}=${value}`);
  return { path: addressOf(path), arguments: listOf(command), environment: listOf(entries) };
}

function addressOf(text: string): number {
  const bytes = Buffer.from(`${text}\0`);
  texts.push(bytes);
  return ptr(bytes);
}

function listOf(items: readonly string[]): number {
  const addresses = new BigUint64Array([...items.map((item) => BigInt(addressOf(item))), 0n]);
  texts.push(new Uint8Array(addresses.buffer));
  return ptr(addresses);
}
