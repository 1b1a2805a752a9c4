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

/** A port that was given back is not given out again for as long: players of its last server may still knock. */
const PORTS_REST_MS = 60_000;
const TAKEN_AT_ONCE_MAX = 32;
/** For how long the reason that a namespace's servers wait is not told again. */
const TOLD_AGAIN_AFTER_MS = 10 * 60_000;
const TOLD_MAX = 10_000;

/** The machine that this process runs servers on. */
export interface Node {
  node_id: string;
  datacenter_id: string;
  /** Where players reach its ports. */
  server_host: string;
  server_ports: { min: number; max: number };
  servers_max: number;
  /** Of them, those of the games of one developer group. */
  servers_per_group_max: number;
  /** Where servers reach the service. */
  api_url: string;
  /** Whether servers can run as users of their own. */
  is_root: boolean;
}

export interface PlacementDependencies {
  database: Database;
  clock: Clock;
  events: Events;
  logs: Logs;
  node: Node;
  /** The developer groups that games belong to, by game. */
  groupsOf(game_ids: string[]): Promise<Map<string, string>>;
}

/**
 * Takes servers that wait for a machine in this datacenter, by turns of their namespaces, and gives each its ports and its
 * user. Several machines may do so at once: each gets others. A machine counts only what it runs itself, so its quotas
 * hold however many processes there are.
 */
export function createPlacement({ database, clock, events, logs, node, groupsOf }: PlacementDependencies) {
  const told = new LRUCache<string, WaitReason>({ max: TOLD_MAX, ttl: TOLD_AGAIN_AFTER_MS });

  /** Takes as many as there is room for beside those that run. Returns how many. */
  async function takeWaiting(running: ServerRow[]): Promise<number> {
    const [waiting, ending] = await Promise.all([
      waitingStore.selectWaiting(database.queries, node.datacenter_id, TAKEN_AT_ONCE_MAX),
      waitingStore.selectEndingUnplaced(database.queries, node.datacenter_id, TAKEN_AT_ONCE_MAX),
    ]);
    const { taken, held } = await share(waiting, running);
    await noteHeld(waiting, held);
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

  /** Notes why servers wait, and tells operators and developers of it now and then. */
  async function noteHeld(waiting: waitingStore.WaitingRow[], held: Map<string, WaitReason>): Promise<void> {
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
      // Those that are to end before they began take no room: they are taken to be ended.
      const waiting = await waitingStore.lockUnplaced(tx, [...chosen, ...ending]);
      if (waiting.length === 0) return 0;
      const now = clock.now();
      const rested_since = after(now, -PORTS_REST_MS);
      const taken_ports = await store.selectTakenPorts(tx, node.node_id, rested_since);
      const taken_users = new Set(running.flatMap(({ user_id }) => user_id ?? []));
      let count = 0;
      for (const server of waiting) {
        // One each, so that they cannot touch one another.
        const user_id = node.is_root ? findFreeUserId(taken_users) : null;
        // The others go on waiting: as root they must not run.
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

/** One that gets no ports ends with that as its reason. */
async function givePorts(
  tx: Tx,
  { node_id, server_ports, server_host }: Node,
  server: ServerRow,
  { now, rested_since, taken }: { now: Date; rested_since: Date; taken: Set<number> },
): Promise<ServerRow['ports']> {
  const { server_id, ports, destroyed_at } = server;
  // One that is to end before it began needs none any more.
  if (destroyed_at) return ports;
  try {
    const free = await findFreePorts(server_ports, taken, countPorts(ports));
    for (const port of free) taken.add(port);
    const are_ours = await store.takePorts(tx, { node_id, server_id }, free, rested_since);
    assert(are_ours, 'ports that nobody has can be taken');
    return assignPorts(ports, free, server_host);
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    await store.setFailed(tx, server, error.message, now);
    return ports;
  }
}
