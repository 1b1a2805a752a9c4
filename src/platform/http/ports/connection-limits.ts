import type { Events } from '../../events.ts';
import { type Loop, startLoop } from '../../loop.ts';
import { createMachineAddressCheck, createNetworkCheck, type Network, normalizeAddress } from '../../networks.ts';
import { clientKey, readConnectionUsers } from '../../system/tcp-ports.ts';
import { refuseNetworks } from './connection-filter.ts';
import { readConnectionsInUse } from './connections-in-use.ts';
import {
  type Activity,
  type Connection,
  openDescriptorTable,
  readActivity,
  readDescriptorsMax,
  shutConnection,
} from './open-connections.ts';

/** Enough for all players behind one address, such as a school or the hall of a tournament. */
const PER_ADDRESS_DEFAULT = 2_048;
/** The share of all descriptors that stays free for files, processes and new clients; at most `RESERVE_MAX`. */
const RESERVE_SHARE = 1 / 8;
const RESERVE_MAX = 256;
/** If no descriptor is left, new clients wait until the next check. */
const CHECK_EVERY_MS = 200;
/** While more descriptors are free than clients can take within a second, they are counted less often. */
const MANY_FREE = 16_384;
const CHECK_EVERY_MS_WHILE_MANY_FREE = 1_000;
const CHECK_EVERY_MS_WHILE_REFUSING = 100;
/** The share of time to spend on reading connections: a hundredth, or a tenth while that is urgent. */
const READING_SHARE = 1 / 100;
const READING_SHARE_WHILE_URGENT = 1 / 10;
const PAUSE_WHILE_CLOSING_MS = 10;
/** How long a network whose connections were closed may open none: it could open them faster than they are closed. */
const REFUSED_MS = 2_000;
const REPORT_EVERY_MS = 10_000;
const REPORTED_NETWORKS_MAX = 8;

interface ConnectionLimitsOptions {
  /** Where the service listens. */
  host: string;
  /** The ports of the service. */
  ports: readonly number[];
  /** By default {@link PER_ADDRESS_DEFAULT}, or half of all descriptors if that is less. */
  connections_per_address_max: number | undefined;
  /** They have no limit of their own, but lose connections too when descriptors run out. */
  trusted_proxies: readonly Network[];
  events: Events;
  signal: AbortSignal;
}

/**
 * Closes connections of addresses over their limit, and of the addresses with most connections when descriptors run out.
 * Bun accepts every connection, and retries in a loop when no descriptor is left, so new clients would wait until another
 * one leaves.
 */
export function startLimitingConnections(options: ConnectionLimitsOptions): Loop {
  const { trusted_proxies, events, signal } = options;
  const ports = new Set(options.ports);
  const table = openDescriptorTable(ports);
  const descriptors_max = readDescriptorsMax();
  const reserve = Math.min(RESERVE_MAX, Math.floor(descriptors_max * RESERVE_SHARE));
  const {
    connections_per_address_max: per_address_max = Math.min(PER_ADDRESS_DEFAULT, Math.floor(descriptors_max / 2)),
  } = options;
  const report = createReporter(events, { descriptors_max, per_address_max });
  const isTrusted = createNetworkCheck(trusted_proxies);
  const isOfProxy = ({ address }: Connection) => {
    const normalized = normalizeAddress(address);
    return normalized !== undefined && isTrusted(normalized);
  };
  const isOfMachine = createMachineAddressCheck(options.host);
  const refusals = createRefusals();
  let last_reading = { began_at: 0, took_ms: 0 };
  let last_free = 0;

  /** Returns how many descriptors are free; undefined if they cannot be counted without reading them. */
  function countFree(): number | undefined {
    const count = table.count();
    return count === undefined ? undefined : descriptors_max - count;
  }

  /** Returns whether one address may have too many connections, or few descriptors may be free. */
  function mayExceed(free: number | undefined): boolean {
    return free === undefined || descriptors_max - free > per_address_max || free < reserve;
  }

  function readInterval(): number {
    if (!refusals.isEmpty()) return CHECK_EVERY_MS_WHILE_REFUSING;
    return last_free >= MANY_FREE ? CHECK_EVERY_MS_WHILE_MANY_FREE : CHECK_EVERY_MS;
  }

  /** Makes each user of this machine a client of its own. As root, each game server has its own user. */
  async function separateUsers(connections: Connection[]): Promise<Connection[]> {
    if (process.getuid?.() !== 0) return connections;
    const users = await readConnectionUsers(ports);
    return connections.map((connection) => {
      const user = isOfMachine(connection.address) ? users.get(clientKey(connection)) : undefined;
      return user === undefined ? connection : { ...connection, network: `${connection.network} (user ${user})` };
    });
  }

  /** Closes connections over the limits. Returns whether there were any. */
  async function closeExcess(): Promise<boolean> {
    const { count, connections: connections_read, listeners } = await table.read();
    refusals.expire(listeners);
    const free = descriptors_max - count;
    const are_few = groupByNetwork(connections_read).every(({ length }) => length <= per_address_max);
    if (free >= reserve && are_few) return false;
    const connections = await separateUsers(connections_read);
    const of_networks = groupByNetwork(connections);
    const ranking = readRanking();
    const above_limit = of_networks.flatMap((of_network) => {
      if (of_network.length <= per_address_max) return [];
      const limited = of_network.filter((connection) => !isOfProxy(connection));
      return takeLeastUsed(limited, limited.length - per_address_max, ranking);
    });
    const left = groupByNetwork(new Set(connections).difference(new Set(above_limit)));
    const is_low = free + above_limit.length < reserve;
    const for_reserve = is_low ? takeFromLargest(left, 2 * reserve - free - above_limit.length, ranking) : [];
    const closed = [...above_limit, ...for_reserve];
    for (const connection of closed) shutConnection(connection);
    // Other game servers have the address of this machine too.
    const refused = closed.filter((connection) => !isOfProxy(connection) && !isOfMachine(connection.address));
    refusals.add(
      refused.map(({ network }) => network),
      listeners,
    );
    report({ above_limit, for_reserve });
    return closed.length > 0;
  }

  const loop = startLoop({
    name: 'connection-limits',
    every_ms: readInterval,
    signal,
    events,
    async step() {
      // Reading the descriptors one by one takes a hundred times as long as counting them.
      const free = countFree();
      last_free = free ?? 0;
      if (!mayExceed(free) && refusals.isEmpty()) return 0;
      const is_urgent = refusals.isAnyOver() || (free !== undefined && free < reserve);
      const share = is_urgent ? READING_SHARE_WHILE_URGENT : READING_SHARE;
      if (performance.now() < last_reading.began_at + last_reading.took_ms / share) return 0;
      for (;;) {
        const began_at = performance.now();
        const has_closed = await closeExcess();
        const took_ms = performance.now() - began_at;
        last_reading = { began_at, took_ms };
        if (!has_closed || signal.aborted) return 0;
        // More may be waiting to be accepted.
        await Bun.sleep(Math.max(PAUSE_WHILE_CLOSING_MS, took_ms / READING_SHARE_WHILE_URGENT));
      }
    },
  });
  return { ...loop, stopped: loop.stopped.finally(() => table[Symbol.dispose]()) };
}

function groupByNetwork(connections: Iterable<Connection>): Connection[][] {
  return [...Map.groupBy(connections, ({ network }) => network).values()];
}

/** Returns `count` connections of the networks with most connections, so that these keep equally many. */
function takeFromLargest(of_networks: Connection[][], count: number, rankOf: Ranking): Connection[] {
  const countAbove = (level: number) => of_networks.reduce((sum, { length }) => sum + Math.max(0, length - level), 0);
  // The highest level that has at least `count` connections above it.
  let level = 0;
  let too_high = Math.max(0, ...of_networks.map(({ length }) => length));
  while (too_high - level > 1) {
    const middle = Math.floor((level + too_high) / 2);
    if (countAbove(middle) >= count) level = middle;
    else too_high = middle;
  }
  const above = of_networks.flatMap((of_network) => takeLeastUsed(of_network, of_network.length - level, rankOf));
  return takeLeastUsed(above, count, rankOf);
}

/** Returns the `count` connections of lowest rank; among equals, those that have been silent for longest. */
function takeLeastUsed(connections: Connection[], count: number, rankOf: Ranking): Connection[] {
  if (count <= 0) return [];
  if (count >= connections.length) return connections;
  const ranked = connections.map((connection) => {
    const activity = readActivity(connection.descriptor);
    return { connection, rank: rankOf(connection, activity), since_sent_ms: activity?.since_sent_ms ?? 0 };
  });
  ranked.sort((one, other) => one.rank - other.rank || other.since_sent_ms - one.since_sent_ms);
  return ranked.slice(0, count).map(({ connection }) => connection);
}

/** Returns the rank of a connection: the higher, the more useful. */
type Ranking = (connection: Connection, activity: Activity | undefined) => number;

/** Ranks connections by their present use: closed ones, silent ones, idle ones, then requests and WebSockets. */
function readRanking(): Ranking {
  const isInUse = readConnectionsInUse();
  return (connection, activity) => {
    if (!activity?.is_open) return 0;
    if (!activity.has_client_sent) return 1;
    return isInUse(connection) || !activity.has_client_received_all ? 3 : 2;
  };
}

/** Creates the list of networks that may open no connection for a while. */
function createRefusals() {
  const refused_until = new Map<string, number>();
  const apply = (listeners: number[]) => {
    for (const listener of listeners) refuseNetworks(listener, [...refused_until.keys()]);
  };
  return {
    isEmpty: () => refused_until.size === 0,
    /** Returns whether the time of a network is over. */
    isAnyOver: () => refused_until.values().some((until) => performance.now() >= until),
    add(networks: string[], listeners: number[]): void {
      const before = refused_until.size;
      for (const network of networks) refused_until.set(network, performance.now() + REFUSED_MS);
      if (refused_until.size > before) apply(listeners);
    },
    /** Admits the networks whose time is over. */
    expire(listeners: number[]): void {
      const before = refused_until.size;
      for (const [network, until] of refused_until) if (performance.now() >= until) refused_until.delete(network);
      if (refused_until.size < before) apply(listeners);
    },
  };
}

interface Closed {
  above_limit: Connection[];
  for_reserve: Connection[];
}

/** Creates the function that reports closed connections to operators: the first at once, later ones together. */
function createReporter(
  events: Events,
  limits: { descriptors_max: number; per_address_max: number },
): (closed: Closed) => void {
  let reported_at = Number.NEGATIVE_INFINITY;
  let [above_limit, for_reserve] = [0, 0];
  const networks = new Set<string>();
  return (closed) => {
    above_limit += closed.above_limit.length;
    for_reserve += closed.for_reserve.length;
    for (const { network } of [...closed.above_limit, ...closed.for_reserve]) {
      if (networks.size < REPORTED_NETWORKS_MAX) networks.add(network);
    }
    if (above_limit + for_reserve === 0 || performance.now() - reported_at < REPORT_EVERY_MS) return;
    events.emit({ event: 'connections_closed', above_limit, for_reserve, networks: [...networks], ...limits });
    reported_at = performance.now();
    [above_limit, for_reserve] = [0, 0];
    networks.clear();
  };
}
