import { createPacer } from '../../../platform/pacing.ts';
import {
  BOOT_ID,
  listProcesses,
  type ProcessStat,
  readStat,
  readUserIds,
  readVariable,
} from '../../../platform/processes.ts';
import { shareRuns } from '../../../platform/runs.ts';
import { isServerUser } from '../user-ids.ts';
import type { ServerHandle } from './runtime.ts';

/** The variable by which a server's processes are found again, however they were started. */
export const MARK = 'MUSTER_SERVER_ID';
/** The parent of every kernel thread. */
const KERNEL_THREADS = 2;

/** How far up a process's parents are followed; nearly always the first one is known already. */
const ANCESTORS_MAX = 100;

/** A living process of a server. */
export interface TreeProcess extends ProcessStat {
  pid: number;
}

/** What tells whose a process is. It stays with the process, so it is read once where it is certain. */
interface Trace {
  start_ticks: number;
  user_ids: number[];
  mark: string | undefined;
  /** The server that it belongs to, once that is known: a child stays its server's when it hides everything. */
  server_id: string | undefined;
}

/** The processes of each of these servers, by server. */
export type ReadTrees = (servers: readonly ServerHandle[]) => Promise<Map<string, TreeProcess[]>>;

/**
 * Reads which processes belong to which servers: by their user, where each server has its own, by the session of the
 * server's first process, by their parents, and by the mark in their environment. All who ask at one time share one scan of
 * /proc, which lets the event loop serve others every few milliseconds.
 */
export function createProcessTrees(): ReadTrees {
  const traces = new Map<number, Trace>();
  let wanted = new Map<string, ServerHandle>();

  const scanShared = shareRuns(async () => {
    const servers = wanted;
    wanted = new Map();
    return groupByServer(await scan(), traces, servers);
  });

  async function scan(): Promise<TreeProcess[]> {
    const pace = createPacer();
    const seen: TreeProcess[] = [];
    const there = new Set<number>();
    for (const pid of listProcesses()) {
      const stat = readStat(pid);
      if (!stat || stat.parent === KERNEL_THREADS) continue;
      there.add(pid);
      const known = traces.get(pid);
      const is_known = known?.start_ticks === stat.start_ticks && isCertain(known);
      if (!is_known) traces.set(pid, readTrace(pid, stat, known));
      seen.push({ pid, ...stat });
      await pace();
    }
    for (const pid of traces.keys()) if (!there.has(pid)) traces.delete(pid);
    return seen;
  }

  return async (servers) => {
    if (servers.length === 0) return new Map();
    for (const server of servers) wanted.set(server.server_id, server);
    const trees = await scanShared();
    return new Map(servers.map(({ server_id }) => [server_id, trees.get(server_id) ?? []]));
  };
}

/** A process between fork and exec still has our user and our environment: what has neither trace is looked at again. */
function isCertain({ server_id, mark, user_ids }: Trace): boolean {
  return server_id !== undefined || mark !== undefined || user_ids.some(isServerUser);
}

function readTrace(pid: number, { start_ticks }: ProcessStat, known: Trace | undefined): Trace {
  const user_ids = readUserIds(pid);
  // The kernel reads an environment from the process's own memory, and a hostile one can make that take for ever. One with
  // a user of its own is found by that.
  const mark = user_ids.some(isServerUser) ? undefined : readVariable(pid, MARK);
  const server_id = known?.start_ticks === start_ticks ? known.server_id : undefined;
  return { start_ticks, user_ids, mark, server_id };
}

/** The living processes of each server. What is found is noted in the traces. */
function groupByServer(
  seen: TreeProcess[],
  traces: Map<number, Trace>,
  servers: Map<string, ServerHandle>,
): Map<string, TreeProcess[]> {
  const by_pid = new Map(seen.map((one) => [one.pid, one]));
  const by_user = new Map<number, string>();
  const by_session = new Map<number, { server_id: string; start_ticks: number }>();
  for (const { server_id, user_id, process } of servers.values()) {
    if (user_id !== undefined) by_user.set(user_id, server_id);
    if (!process || process.boot_id !== BOOT_ID) continue;
    const leader = by_pid.get(process.pid);
    // Of a later process with the same number the session is another.
    if (leader && leader.start_ticks !== process.start_ticks) continue;
    by_session.set(process.pid, { server_id, start_ticks: process.start_ticks });
  }

  function ownerOf(one: TreeProcess, ancestors_left = ANCESTORS_MAX): string | undefined {
    const trace = traces.get(one.pid);
    if (trace?.server_id !== undefined) return trace.server_id;
    const session = by_session.get(one.session);
    const parent = by_pid.get(one.parent);
    // A younger process with that number is not the parent.
    const has_parent = parent && parent.start_ticks <= one.start_ticks && ancestors_left > 0;
    const owner =
      trace?.user_ids.map((user_id) => by_user.get(user_id)).find((server_id) => server_id !== undefined) ??
      (session && one.start_ticks >= session.start_ticks ? session.server_id : undefined) ??
      (has_parent ? ownerOf(parent, ancestors_left - 1) : undefined) ??
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
