import { forEachAtOnce, pace } from '../../../../platform/pacing.ts';
import {
  BOOT_ID,
  identifyProcess,
  isRunning,
  type ProcessIdentity,
  signalProcess,
} from '../../../../platform/system/processes.ts';
import { hasErrorCode } from '../../../../platform/system/system-errors.ts';
import { SHELL } from './exit-status.ts';
import type { ProcessServer, ReadTrees, TreeProcess } from './process-trees.ts';

const SWEEPS_MAX = 20;
const SWEEP_PAUSE_MS = 25;
/** Each killer is a process, which takes about a millisecond to start. */
const KILLERS_AT_ONCE_MAX = 4;
/** Time for a killer to end, because the processes to kill may stop it first. */
const KILLER_TIMEOUT_MS = 1_000;

interface KillingOptions {
  readTrees: ReadTrees;
  /** Lists the processes in the control group of a server. By default there is no group. */
  listGroup?: (server_id: string) => number[];
  /** Called with each server as soon as it has no process left. */
  onGone?: ((server_id: string) => void) | undefined;
}

/** Kills servers and everything that they started. Returns the ids of the servers that have no process left. */
export async function killServers(
  servers: readonly ProcessServer[],
  { readTrees, listGroup = () => [], onGone }: KillingOptions,
): Promise<Set<string>> {
  // Reads the trees while the parents run, because a child that hides its other traces is found only by its parent.
  await readTrees(servers);
  for (const { process: first } of servers) {
    if (first && isRunning(first)) signalProcess(-first.pid, 'SIGKILL');
    await pace();
  }
  const user_ids = servers.flatMap(({ user_id }) => user_id ?? []);
  await forEachAtOnce(user_ids, KILLERS_AT_ONCE_MAX, killUser);
  const gone = new Set<string>();
  let left = servers;
  for (let sweep = 0; sweep < SWEEPS_MAX && left.length > 0; sweep += 1) {
    // Traces find a process that left the group. The next sweep finds a process that started during this one.
    if (sweep > 0) await Bun.sleep(SWEEP_PAUSE_MS);
    const trees = await readTrees(left);
    const still_left: ProcessServer[] = [];
    for (const server of left) {
      const { server_id } = server;
      const members = membersOf(trees.get(server_id) ?? [], listGroup(server_id));
      if (members.length > 0) {
        still_left.push(server);
      } else {
        gone.add(server_id);
        onGone?.(server_id);
      }
      for (const member of members) {
        // Listed processes end meanwhile, and another program may get the id of one.
        if (isRunning(member)) signalProcess(member.pid, 'SIGKILL');
        await pace();
      }
    }
    left = still_left;
  }
  return gone;
}

/** Returns the living processes of a server, each once. */
function membersOf(tree: readonly TreeProcess[], group: readonly number[]): ProcessIdentity[] {
  const in_tree = tree.map(({ pid, start_ticks }) => ({ pid, start_ticks, boot_id: BOOT_ID }));
  // The kernel may list a process that has ended until its parent has waited for it.
  const in_group = group.flatMap((pid) => identifyProcess(pid) ?? []);
  return [...new Map([...in_tree, ...in_group].map((one) => [one.pid, one])).values()];
}

/**
 * Kills all processes of a user at once. A process that replaces itself quickly may be in no list, but the kernel starts
 * no process during this call. The script checks that it runs as that user, because as root it would kill everything.
 */
async function killUser(user_id: number): Promise<void> {
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
    // The limit of processes is reached until the sweeps kill the listed processes.
    if (!hasErrorCode(error, 'EAGAIN')) throw error;
  }
}

const KILL_ALL =
  'while read -r name user rest; do [ "$name" = Uid: ] && [ "$user" = "$0" ] && kill -s KILL -- -1; done </proc/self/status';
