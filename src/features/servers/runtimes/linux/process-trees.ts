import { pace } from '../../../../platform/pacing.ts';
import { shareRuns } from '../../../../platform/runs.ts';
import { readCgroupIds } from '../../../../platform/system/cgroups.ts';
import {
  BOOT_ID,
  listProcesses,
  type ProcessIdentity,
  type ProcessStat,
  readStat,
  readStatus,
  readVariable,
} from '../../../../platform/system/processes.ts';
import { isServerUser } from '../process/user-ids.ts';

/** The environment variable that marks the processes of a server. Processes inherit it however they are started. */
export const MARK = 'MUSTER_SERVER_ID';
/** The process id of kthreadd, the parent of all kernel threads. */
const KERNEL_THREADS = 2;

/** The groups that this process is in, if it is itself a server of another service. */
const OWN_GROUP_IDS = new Set(readCgroupIds(process.pid));

const OWN_USER_ID = process.getuid?.();

/** Returns whether only a server can have this user. The service itself may run as a user of the servers' range. */
const isUserOfServer = (user_id: number): boolean => user_id !== OWN_USER_ID && isServerUser(user_id);

/** Maximum number of ancestors to follow. Usually the server of the parent is already known. */
const ANCESTORS_MAX = 100;

/** The facts by which the processes of a server are found. */
export interface ProcessServer {
  server_id: string;
  /** The first process of the server, if it is recorded. */
  process: ProcessIdentity | undefined;
  /** The user that only this server has. */
  user_id: number | undefined;
}

/** A living process of a server. */
export interface TreeProcess extends ProcessStat {
  pid: number;
}

/** The facts that show which server a process belongs to. They are read again only if they may have changed. */
interface Trace {
  start_ticks: number;
  /** The program that the process ran when the facts were read. */
  program: string | undefined;
  user_ids: number[];
  /** Whether it is in a container. Programs there choose their environment, so only a process's parents tell its server. */
  is_contained: boolean;
  /** The servers whose control groups it is in: one, unless that server is itself a service. */
  group_ids: string[];
  mark: string | undefined;
  /** The server of the process once it is known. It is kept, because a process may hide the other facts later. */
  server_id: string | undefined;
}

/** Returns the living processes of each of the servers. */
export type ReadTrees = (servers: readonly ProcessServer[]) => Promise<Map<string, TreeProcess[]>>;

/**
 * Creates the function that finds the processes of servers: by their user, where each server has its own, by the session
 * of the server's first process, by their parents, by their control group, and by the mark in their environment.
 * Concurrent calls share one scan of /proc, which yields to the event loop every few milliseconds.
 */
export function createProcessTrees(): ReadTrees {
  const traces = new Map<number, Trace>();
  let wanted = new Map<string, ProcessServer>();

  const scanShared = shareRuns(async () => {
    const servers = wanted;
    wanted = new Map();
    return groupByServer(await scan(), traces, servers);
  });

  async function scan(): Promise<TreeProcess[]> {
    const seen: TreeProcess[] = [];
    const existing = new Set<number>();
    for (const pid of listProcesses()) {
      const stat = readStat(pid);
      if (!stat || stat.parent === KERNEL_THREADS) continue;
      existing.add(pid);
      const known = traces.get(pid);
      if (!known || !isCurrent(known, stat)) traces.set(pid, readTrace(pid, stat, known));
      seen.push({ pid, ...stat });
      await pace();
    }
    for (const pid of traces.keys()) if (!existing.has(pid)) traces.delete(pid);
    return seen;
  }

  return async (servers) => {
    if (servers.length === 0) return new Map();
    for (const server of servers) wanted.set(server.server_id, server);
    const trees = await scanShared();
    return new Map(servers.map(({ server_id }) => [server_id, trees.get(server_id) ?? []]));
  };
}

/**
 * Returns whether the facts about a process still hold. Between fork and exec a process still has the user and environment
 * of the service, so the facts that show no server hold until it runs another program.
 */
function isCurrent(known: Trace, { start_ticks, program }: ProcessStat): boolean {
  if (known.start_ticks !== start_ticks) return false;
  return isCertain(known) || (program !== undefined && known.program === program);
}

/** Returns whether the facts show the server of a process, or that only its parents can. */
function isCertain({ server_id, is_contained, group_ids, mark, user_ids }: Trace): boolean {
  return (
    server_id !== undefined ||
    is_contained ||
    group_ids.length > 0 ||
    mark !== undefined ||
    user_ids.some(isUserOfServer)
  );
}

function readTrace(pid: number, { start_ticks, program }: ProcessStat, known: Trace | undefined): Trace {
  const { user_ids, has_own_pid_namespace: is_contained } = readStatus(pid);
  // The kernel reads an environment from the memory of the process, and a hostile process can block that forever. So the
  // environment of a process that has a server's user, which suffices to find it, is not read.
  const is_found = is_contained || user_ids.some(isUserOfServer);
  const group_ids = is_found ? [] : readCgroupIds(pid).filter((id) => !OWN_GROUP_IDS.has(id));
  // A program can change its environment, and not its group.
  const mark = is_found || group_ids.length > 0 ? undefined : readVariable(pid, MARK);
  const server_id = known?.start_ticks === start_ticks ? known.server_id : undefined;
  return { start_ticks, program, user_ids, is_contained, group_ids, mark, server_id };
}

/** Returns the living processes of each server, and records the server of each process in the traces. */
function groupByServer(
  seen: TreeProcess[],
  traces: Map<number, Trace>,
  servers: Map<string, ProcessServer>,
): Map<string, TreeProcess[]> {
  const by_pid = new Map(seen.map((one) => [one.pid, one]));
  const by_user = new Map<number, string>();
  const by_session = new Map<number, { server_id: string; start_ticks: number }>();
  for (const { server_id, user_id, process } of servers.values()) {
    if (user_id !== undefined) by_user.set(user_id, server_id);
    if (!process || process.boot_id !== BOOT_ID) continue;
    const leader = by_pid.get(process.pid);
    // The process id was reused: the session of this later process is another one.
    if (leader && leader.start_ticks !== process.start_ticks) continue;
    by_session.set(process.pid, { server_id, start_ticks: process.start_ticks });
  }

  function ownerOf(one: TreeProcess, ancestors_left = ANCESTORS_MAX): string | undefined {
    const trace = traces.get(one.pid);
    if (trace?.server_id !== undefined) return trace.server_id;
    const session = by_session.get(one.session);
    const parent = by_pid.get(one.parent);
    // The process id was reused if the process is younger than its child; then it is not the parent.
    const has_parent = parent && parent.start_ticks <= one.start_ticks && ancestors_left > 0;
    const owner =
      trace?.user_ids.map((user_id) => by_user.get(user_id)).find((server_id) => server_id !== undefined) ??
      (session && one.start_ticks >= session.start_ticks ? session.server_id : undefined) ??
      (has_parent ? ownerOf(parent, ancestors_left - 1) : undefined) ??
      trace?.group_ids.find((server_id) => servers.has(server_id)) ??
      (trace?.mark !== undefined && servers.has(trace.mark) ? trace.mark : undefined);
    if (trace) trace.server_id = owner;
    return owner;
  }

  const trees = new Map<string, TreeProcess[]>();
  for (const one of seen) {
    const owner = ownerOf(one);
    if (owner === undefined || one.is_dead) continue;
    const tree = trees.get(owner);
    if (tree) tree.push(one);
    else trees.set(owner, [one]);
  }
  return trees;
}
