import { LRUCache } from 'lru-cache';
import { after, type Clock } from '../../platform/clock.ts';
import type { Database, Tx } from '../../platform/database/database.ts';
import { assert, ServiceError } from '../../platform/errors.ts';
import type { Events } from '../../platform/events.ts';
import { findFreePorts } from './free-ports.ts';
import type { Logs } from './logs.ts';
import { assignPorts, countPorts, portsAt } from './rules.ts';
import type { Runtime } from './runtimes/runtime.ts';
import * as store from './store.ts';
import type { ServerRow, WaitReason } from './tables.ts';
import { describeWait, shareRoom } from './turns.ts';
import * as waitingStore from './waiting-store.ts';

/** Time before a released port is assigned again, because players of its previous server may still connect to it. */
const PORT_REUSED_AFTER_MS = 60_000;
const TAKEN_AT_ONCE_MAX = 32;
/** Time before it is reported again why a namespace's servers wait. */
const REPORTED_AGAIN_AFTER_MS = 10 * 60_000;
const REPORTED_MAX = 10_000;

/** The settings of a machine that runs game servers. */
interface NodeSettings {
  server_ports: { min: number; max: number };
  servers_max: number;
  /** Maximum of servers for the games of one developer group. */
  servers_per_group_max: number;
}

/** The machine of this process. */
export interface Node extends NodeSettings {
  node_id: string;
  datacenter_id: string;
  /** Address at which servers reach the service. */
  api_url: string;
}

export interface PlacementDependencies {
  database: Database;
  clock: Clock;
  events: Events;
  logs: Logs;
  node: Node;
  runtime: Pick<Runtime, 'host'>;
  /** Returns the developer groups of games, by game. */
  groupsOf(game_ids: string[]): Promise<Map<string, string>>;
}

/**
 * Creates the step that places waiting servers of this datacenter on this machine, in turns of their namespaces, and
 * assigns ports to each. Machines place concurrently and take different servers. A machine counts only its
 * own servers, so its quotas hold with any number of processes.
 */
export function createPlacement({ database, clock, events, logs, node, runtime, groupsOf }: PlacementDependencies) {
  const reported = new LRUCache<string, WaitReason>({ max: REPORTED_MAX, ttl: REPORTED_AGAIN_AFTER_MS });

  /** Takes waiting servers while the machine has room for them. Returns how many it took. */
  async function takeWaiting(running: ServerRow[]): Promise<number> {
    const [waiting, ending] = await Promise.all([
      waitingStore.selectWaiting(database.queries, node.datacenter_id, TAKEN_AT_ONCE_MAX),
      waitingStore.selectEndingUnplaced(database.queries, node.datacenter_id, TAKEN_AT_ONCE_MAX),
    ]);
    const { taken, held } = await share(waiting, running);
    await recordWaitReasons(waiting, held);
    return taken.size === 0 && ending.length === 0 ? 0 : await take(taken, ending);
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
    const changed = new Map<string, WaitReason>();
    for (const { namespace_id, server_id, wait_reason } of waiting) {
      const reason = held.get(namespace_id);
      if (!reason) continue;
      if (reason !== wait_reason) changed.set(server_id, reason);
      if (reported.get(namespace_id) === reason) continue;
      reported.set(namespace_id, reason);
      await logs.addLine({ server_id, stream: 'std_err' }, `[muster] this server waits: ${describeWait(reason)}`);
      events.emit({ event: 'server_waits', server_id, namespace_id, reason });
    }
    if (changed.size > 0) await waitingStore.setWaitReasons(database.queries, changed);
  }

  async function take(taken: Map<string, number>, ending: string[]): Promise<number> {
    return await database.transact(async (tx) => {
      const chosen = await waitingStore.lockWaiting(tx, node.datacenter_id, taken);
      // Servers that end before they start need no room; they are taken only to be ended.
      const waiting = await waitingStore.lockUnplaced(tx, [...chosen, ...ending]);
      if (waiting.length === 0) return 0;
      const now = clock.now();
      const released_before = after(now, -PORT_REUSED_AFTER_MS);
      const taken_ports = await store.selectTakenPorts(tx, node.node_id, released_before);
      for (const server of waiting) {
        const reserved = await reservePorts(tx, node, server, { now, released_before, taken: taken_ports });
        // A server may call the service before its start is recorded, and its lobby must have an address then.
        const ports = runtime.host === undefined ? reserved : portsAt(runtime.host, reserved);
        await store.assignServer(tx, server.server_id, { node_id: node.node_id, ports });
      }
      return waiting.length;
    });
  }

  return { takeWaiting };
}

/** Reserves free ports for a server and returns its ports. If there are too few, the server ends with that reason. */
async function reservePorts(
  tx: Tx,
  { node_id, server_ports }: Node,
  server: ServerRow,
  { now, released_before, taken }: { now: Date; released_before: Date; taken: Set<number> },
): Promise<ServerRow['ports']> {
  const { server_id, ports, destroyed_at } = server;
  // A server that ends before it starts needs no ports.
  if (destroyed_at) return ports;
  try {
    const free = await findFreePorts(server_ports, taken, countPorts(ports));
    for (const port of free) taken.add(port);
    const are_taken = await store.takePorts(tx, { node_id, server_id }, free, released_before);
    assert(are_taken, 'ports that no server has can be taken');
    return assignPorts(ports, free);
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    await store.setFailed(tx, server, error.message, now);
    return ports;
  }
}
