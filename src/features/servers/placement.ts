import { after, type Clock } from '../../platform/clock.ts';
import type { Database, Tx } from '../../platform/database/database.ts';
import { assert, ServiceError } from '../../platform/errors.ts';
import { findFreePorts } from './free-ports.ts';
import { assignPorts, countPorts } from './rules.ts';
import * as store from './store.ts';
import type { ServerRow } from './tables.ts';
import { findFreeUserId } from './user-ids.ts';

/** A port that was given back is not given out again for as long: players of its last server may still knock. */
const PORTS_REST_MS = 60_000;
const TAKEN_AT_ONCE_MAX = 32;

/** The machine that this process runs servers on. */
export interface Node {
  node_id: string;
  datacenter_id: string;
  /** Where players reach its ports. */
  server_host: string;
  server_ports: { min: number; max: number };
  servers_max: number;
  /** Where servers reach the service. */
  api_url: string;
  /** Whether servers can run as users of their own. */
  is_root: boolean;
}

interface PlacementDependencies {
  database: Database;
  clock: Clock;
  node: Node;
}

/**
 * Takes servers that wait for a machine in this datacenter, as many as there is room for beside those that run here, and
 * gives each its ports and its user. Gives how many it took. Several machines may do so at once: each gets others.
 */
export async function takeWaiting(
  { database, clock, node }: PlacementDependencies,
  running: ServerRow[],
): Promise<number> {
  const room = Math.min(TAKEN_AT_ONCE_MAX, node.servers_max - running.length);
  if (room <= 0) return 0;
  return await database.transact(async (tx) => {
    const waiting = await store.lockWaiting(tx, node.datacenter_id, room);
    if (waiting.length === 0) return 0;
    const now = clock.now();
    const rested_since = after(now, -PORTS_REST_MS);
    const taken = await store.selectTakenPorts(tx, node.node_id, rested_since);
    const taken_users = new Set(running.flatMap(({ user_id }) => user_id ?? []));
    let count = 0;
    for (const server of waiting) {
      // One each, so that they cannot touch one another.
      const user_id = node.is_root ? findFreeUserId(taken_users) : null;
      // The others go on waiting: as root they must not run.
      if (user_id === undefined) break;
      if (user_id !== null) taken_users.add(user_id);
      const ports = await givePorts(tx, node, server, { now, rested_since, taken });
      await store.assignServer(tx, server.server_id, { node_id: node.node_id, user_id, ports });
      count += 1;
    }
    return count;
  });
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
