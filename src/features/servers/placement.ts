import { LRUCache } from 'lru-cache';
import { after, type Clock } from '../../platform/clock.ts';
import type { Database, Tx } from '../../platform/database/database.ts';
import { assert, ServiceError } from '../../platform/errors.ts';
import type { Events } from '../../platform/events.ts';
import { findFreePorts } from './free-ports.ts';
import type { Logs } from './logs.ts';
import { assignPorts, countPorts } from './rules.ts';
import * as store from './store.ts';
import type { ServerRow, WaitReason } from './tables.ts';
import { describeWait, shareRoom } from './turns.ts';
import { findFreeUserId } from './user-ids.ts';
import * as waitingStore from './waiting-store.ts';

/** Time before a released port is assigned again, because players of its last server may still connect. */
const PORTS_REST_MS = 60_000;
const TAKEN_AT_ONCE_MAX = 32;
/** Time before the reason why a namespace's servers wait is reported again. */
const TOLD_AGAIN_AFTER_MS = 10 * 60_000;
const TOLD_MAX = 10_000;

/** The machine of this process. */
export interface Node {
  node_id: string;
  datacenter_id: string;
  /** Host name or address at which players reach its ports. */
  server_host: string;
  server_ports: { min: number; max: number };
  servers_max: number;
  /** Maximum of servers for the games of one developer group. */
  servers_per_group_max: number;
  /** Address at which servers reach the service. */
  api_url: string;
  /** Whether servers can run as separate users. */
  is_root: boolean;
}

export interface PlacementDependencies {
  database: Database;
  clock: Clock;
  events: Events;
  logs: Logs;
  node: Node;
  /** Returns the developer groups of games, by game. */
  groupsOf(game_ids: string[]): Promise<Map<string, string>>;
}

/**
 * Creates the step that places waiting servers of this datacenter on this machine, in turns of their namespaces, and
 * assigns ports and a user to each. Machines place concurrently and take different servers. A machine counts only its
 * own servers, so its quotas hold with any number of processes.
 */
export function createPlacement({ database, clock, events, logs, node, groupsOf }: PlacementDependencies) {
  const told = new LRUCache<string, WaitReason>({ max: TOLD_MAX, ttl: TOLD_AGAIN_AFTER_MS });

  /** Takes as many waiting servers as there is room for. Returns how many. */
  async function takeWaiting(running: ServerRow[]): Promise<number> {
    const [waiting, ending] = await Promise.all([
      waitingStore.selectWaiting(database.queries, node.datacenter_id, TAKEN_AT_ONCE_MAX),
      waitingStore.selectEndingUnplaced(database.queries, node.datacenter_id, TAKEN_AT_ONCE_MAX),
    ]);
    const { taken, held } = await share(waiting, running);
    await recordWaitReasons(waiting, held);
    return taken.size === 0 && ending.length === 0 ? 0 : await take(taken, ending, running);
  }

  async function share(waiting: waitingStore.WaitingRow[], running: ServerRow[]) {
    const game_ids = new Set([...waiting, ...running].map(({ game_id }) => game_id));
    const groups = waiting.length === 0 ? new Map<string, string>() : await groupsOf([...game_ids]);
    const withGroup = <Of extends { game_id: string }>(one: Of) => ({
      ...one,
      group_id: groups.get(one.game_id) ?? one.game_id,
    });
    return shareRoom(waiting.map(withGroup), {
      ...node,
      running: running.map(withGroup),
      taken_at_once_max: TAKEN_AT_ONCE_MAX,
    });
  }

  /** Records why servers wait, and from time to time reports it to operators and developers. */
  async function recordWaitReasons(waiting: waitingStore.WaitingRow[], held: Map<string, WaitReason>): Promise<void> {
    const noted = new Map<string, WaitReason>();
    for (const { namespace_id, server_id, wait_reason } of waiting) {
      const reason = held.get(namespace_id);
      if (!reason) continue;
      if (reason !== wait_reason) noted.set(server_id, reason);
      if (told.get(namespace_id) === reason) continue;
      told.set(namespace_id, reason);
      await logs.addLine({ server_id, stream: 'std_err' }, `[muster] it waits: ${describeWait(reason)}`);
      events.emit({ event: 'server_waits', server_id, namespace_id, reason });
    }
    if (noted.size > 0) await waitingStore.setWaitReasons(database.queries, noted);
  }

  async function take(taken: Map<string, number>, ending: string[], running: ServerRow[]): Promise<number> {
    return await database.transact(async (tx) => {
      const chosen = await waitingStore.lockWaiting(tx, node.datacenter_id, taken);
      // Servers that end before they start need no room; they are taken only to be ended.
      const waiting = await waitingStore.lockUnplaced(tx, [...chosen, ...ending]);
      if (waiting.length === 0) return 0;
      const now = clock.now();
      const rested_since = after(now, -PORTS_REST_MS);
      const taken_ports = await store.selectTakenPorts(tx, node.node_id, rested_since);
      const taken_users = new Set(running.flatMap(({ user_id }) => user_id ?? []));
      let count = 0;
      for (const server of waiting) {
        // Each gets its own user, so that servers cannot affect each other.
        const user_id = node.is_root ? findFreeUserId(taken_users) : null;
        // The remaining servers keep waiting, because they must not run as root.
        if (user_id === undefined) break;
        if (user_id !== null) taken_users.add(user_id);
        const ports = await givePorts(tx, node, server, { now, rested_since, taken: taken_ports });
        await store.assignServer(tx, server.server_id, { node_id: node.node_id, user_id, ports });
        count += 1;
      }
      return count;
    });
  }

  return { takeWaiting };
}

/** Assigns ports to a server. Without free ports the server ends with that reason. */
async function givePorts(
  tx: Tx,
  { node_id, server_ports, server_host }: Node,
  server: ServerRow,
  { now, rested_since, taken }: { now: Date; rested_since: Date; taken: Set<number> },
): Promise<ServerRow['ports']> {
  const { server_id, ports, destroyed_at } = server;
  // A server that ends before it starts needs no ports.
  if (destroyed_at) return ports;
  try {
    const free = await findFreePorts(server_ports, taken, countPorts(ports));
    for (const port of free) taken.add(port);
    const are_ours = await store.takePorts(tx, { node_id, server_id }, free, rested_since);
    assert(are_ours, 'ports of no server can be taken');
    return assignPorts(ports, free, server_host);
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    await store.setFailed(tx, server, error.message, now);
    return ports;
  }
}
