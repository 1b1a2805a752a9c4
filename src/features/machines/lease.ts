import type { Database, Tx } from '../../platform/database/database.ts';
import type { Events } from '../../platform/events.ts';
import { type Loop, startDeletingOld, startLoop } from '../../platform/loop.ts';
import { forEachAtOnce } from '../../platform/pacing.ts';
import { type Feed, wakeOnChange } from '../../platform/watch/feed.ts';
import { topics } from '../topics.ts';
import { ClusterLease, type ClusterMachine } from './cluster-lease.ts';
import { registerOwn } from './registration.ts';
import { FailureDetector, heartbeatInterval } from './rules.ts';
import * as store from './store.ts';
import { type MachineSnapshot, UNKNOWN_CLUSTER } from './tables.ts';

/**
 * The statement of a heartbeat gets at least this time, however short the interval is. After a late one, the next
 * statement opens a new connection first, which takes a busy machine more than a second.
 */
const HEARTBEAT_WITHIN_MIN_MS = 5_000;
/** Shortest pause between two heartbeats. */
const PAUSE_MIN_MS = 20;
/** Time after which a stopped or lost machine is deleted, with its drain. */
const KEPT_FOR_MS = 30 * 24 * 3_600_000;
const DECLARED_AT_ONCE_MAX = 4;
/** Part of `lost_after_ms` after which another process takes the machine of a cluster over. That ends no game. */
const TAKE_OVER_SHARE = 0.5;

/** The machine of this process. */
export interface OwnMachine {
  node_id: string;
  datacenter_id: string;
  name: string;
  place: string;
  data_directory: string;
  /** Whether a cluster runs the servers of this process. */
  has_cluster: boolean;
}

export interface LeaseDependencies {
  database: Database;
  events: Events;
  feed: Feed;
  own: OwnMachine;
  /** How long the heartbeat of this machine may stay the same until the others declare it lost. */
  lost_after_ms: number;
  /** How long this machine may rest after its process was stopped, until the others declare it lost. */
  rest_ms: number;
  /** Records the end of all servers of a machine that is declared lost. Returns how many. */
  endServersOf(tx: Tx, node_id: string): Promise<number>;
}

/** The machines as this process saw them last. */
interface ReadMachines {
  machines: readonly MachineSnapshot[];
  late: ReadonlySet<string>;
}

/** What the last heartbeat found. */
interface LastDetection {
  /** The id of this process as the holder, when the heartbeat began. */
  holder: string;
  /** Whether this machine was declared lost. */
  was_declared_lost: boolean;
  /** Other machines that are to be declared lost. */
  lost: readonly MachineSnapshot[];
}

export type Lease = ReturnType<typeof createLease>;

/**
 * Creates the lease of this machine: it writes the machine's heartbeat, declares machines lost whose heartbeat stops, and
 * says whether this machine may take work. Each start, and each return of a lost machine, has a new holder.
 */
export function createLease(dependencies: LeaseDependencies) {
  const { database, events, feed, own, lost_after_ms, rest_ms, endServersOf } = dependencies;
  const { node_id, has_cluster } = own;
  const heartbeat_ms = heartbeatInterval(lost_after_ms);
  // Not a connection of the pool: a heartbeat must not wait for other work.
  const connection = database.openDedicatedConnection({ query_ms: Math.max(heartbeat_ms, HEARTBEAT_WITHIN_MIN_MS) });
  const declaredLostListeners: (() => Promise<void>)[] = [];
  const detector = new FailureDetector(2 * heartbeat_ms);
  let holder = crypto.randomUUID();
  let cluster_id = has_cluster ? UNKNOWN_CLUSTER : null;
  let last_read: ReadMachines = { machines: [], late: new Set() };
  let last_detection: LastDetection = { holder, was_declared_lost: false, lost: [] };
  let next_in_ms = heartbeat_ms;
  let is_replaced = false;
  let takes_servers = true;
  let heartbeat_loop: Loop | undefined;
  let detection_loop: Loop | undefined;
  const cluster_lease = new ClusterLease({
    database,
    events,
    own: { ...own, host: own.name },
    heartbeat_ms,
    take_over_after_ms: lost_after_ms * TAKE_OVER_SHARE,
    // Longer than a takeover waits, however short the rest is.
    lost_after_ms: Math.max(rest_ms, lost_after_ms),
    rest_ms,
    takesServers: () => takes_servers,
    wakeHeartbeat: () => heartbeat_loop?.wake(),
  });

  /** Writes the heartbeats of this machine and of its cluster, and detects lost machines; without the database, none. */
  async function sendHeartbeat(): Promise<number> {
    const asked_ms = performance.now();
    const sent_as = holder;
    const held_cluster = cluster_lease.holding;
    let read: Awaited<ReturnType<typeof store.writeHeartbeats>>;
    try {
      const holdings = [{ node_id, holder: sent_as }, ...(held_cluster ? [held_cluster] : [])];
      read = await store.writeHeartbeats(connection, holdings);
    } catch (cause) {
      detector.forget();
      cluster_lease.onHeartbeatFailed();
      last_detection = { holder: sent_as, was_declared_lost: false, lost: [] };
      next_in_ms = heartbeat_ms;
      events.emit({ event: 'beat_failed', cause });
      return 0;
    }
    const { machines, written } = read;
    const is_written = written.has(node_id);
    const others = machines.filter((machine) => machine.node_id !== node_id);
    const times = { asked_ms, answered_ms: performance.now() };
    const detection = detector.detect(others, times);
    const of_cluster_in_ms = cluster_lease.onHeartbeat(held_cluster, { ...read, ...times });
    next_in_ms = Math.max(Math.min(heartbeat_ms, detection.next_in_ms, of_cluster_in_ms), PAUSE_MIN_MS);
    last_read = { machines, late: detection.late };
    // Only a holder declares others lost.
    last_detection = { holder: sent_as, was_declared_lost: !is_written, lost: is_written ? detection.lost : [] };
    if (!is_written || detection.lost.length > 0) detection_loop?.wake();
    return 0;
  }

  /**
   * Applies what the last heartbeat found. No heartbeat waits for it: a transaction that takes long would make this machine
   * late.
   */
  async function applyDetection(): Promise<number> {
    const { holder: found_by, was_declared_lost, lost } = last_detection;
    // This machine has come back since.
    if (found_by !== holder) return 0;
    if (was_declared_lost) await comeBack(last_read.machines.find((machine) => machine.node_id === node_id));
    // One that cannot be declared lost yet, because a transaction locks its row, delays no other.
    await forEachAtOnce(lost, DECLARED_AT_ONCE_MAX, declareLost);
    return 0;
  }

  async function declareLost(machine: MachineSnapshot): Promise<void> {
    const ended = await database.transact((tx) => store.declareLost(tx, machine, endServersOf));
    if (ended === undefined) return;
    const { name: host, lost_after_ms: for_ms } = machine;
    events.emit({ event: 'machine_lost', node_id: machine.node_id, host, for_ms, servers: ended });
  }

  /** Ends what is left of the servers that were lost with this machine, then lets it take work with a new holder. */
  async function comeBack(row: MachineSnapshot | undefined): Promise<void> {
    // Another holder at the same place is an older state: the database was restored to a time before this start.
    const is_replaced_now = row?.state === 'up' && row.place !== own.place;
    if (is_replaced_now && !is_replaced) events.emit({ event: 'machine_replaced', node_id, host: row.name });
    is_replaced = is_replaced_now;
    if (is_replaced) return;
    for (const endServers of declaredLostListeners) await endServers();
    const registration = { ...own, holder: crypto.randomUUID(), lost_after_ms, cluster_id };
    const is_back = await database.transact((tx) => store.registerMachine(tx, registration, null));
    if (is_back) {
      // Not before: until then, a heartbeat of the new holder would find it lost too.
      holder = registration.holder;
      events.emit({ event: 'machine_returned', node_id });
    }
    heartbeat_loop?.wake();
  }

  /** Returns the ids of this process's own machine and, while it holds the lease of a cluster, of the cluster's. */
  function heldIds(): string[] {
    const { holding } = cluster_lease;
    return holding ? [node_id, holding.node_id] : [node_id];
  }

  return {
    /** Makes this process the holder of its machine. Throws StartError if another process may be. */
    async register(signal: AbortSignal | undefined): Promise<void> {
      const { data_directory } = own;
      await registerOwn({ ...own, holder, lost_after_ms, cluster_id }, { database, events, data_directory, signal });
    },
    /** Starts to write heartbeats and to detect lost machines. */
    startWork(signal: AbortSignal): Loop[] {
      detector.forget();
      const shared = { signal, events };
      detection_loop = startLoop({ ...shared, name: 'lost-machines', every_ms: lost_after_ms, step: applyDetection });
      heartbeat_loop = startLoop({ ...shared, name: 'machines', every_ms: () => next_in_ms, step: sendHeartbeat });
      wakeOnChange(heartbeat_loop, { feed, topics: [topics.machines()], signal });
      const old = startDeletingOld({
        name: 'old-machines',
        signal,
        events,
        deleteOld: () => store.deleteGone(database.queries, KEPT_FOR_MS),
      });
      return [heartbeat_loop, detection_loop, old];
    },
    /** Records that this process stops. If servers run on, the machine rests until it is declared lost. */
    async stop({ has_servers }: { has_servers: boolean }): Promise<void> {
      const end = has_servers
        ? ({ state: 'resting', lost_after_ms: rest_ms } as const)
        : ({ state: 'stopped', lost_after_ms } as const);
      await database.transact((tx) => store.setStopped(tx, { node_id, holder }, end));
    },
    /**
     * Locks this machine's row until the transaction ends. Returns whether it takes servers; undefined if this process may do
     * no work for it.
     */
    async lockHeld(tx: Tx): Promise<{ takes_servers: boolean } | undefined> {
      const held = await store.lockHeld(tx, { node_id, holder });
      return held && { takes_servers: takes_servers && !has_cluster && !held.is_draining };
    },
    /** Stops this machine from taking servers until its next start. Resolves once servers that are being taken are taken. */
    async stopTakingServers(): Promise<void> {
      takes_servers = false;
      for (const machine_id of heldIds()) await database.transact((tx) => store.awaitServersTaken(tx, machine_id));
    },
    /** Records which cluster runs the servers of this process. Returns the lease of the cluster's machine. */
    async joinCluster(joined: ClusterMachine): Promise<ClusterLease> {
      cluster_id = joined.node_id;
      await database.transact((tx) => store.setCluster(tx, { node_id, holder }, joined.node_id));
      cluster_lease.join(joined);
      return cluster_lease;
    },
    /**
     * Records that this process will leave its cluster. Returns whether another process uses it, which then takes it over. Of
     * several processes that leave at a time, the last one to record it finds no other.
     */
    async prepareToLeaveCluster(): Promise<boolean> {
      const { machine } = cluster_lease;
      if (!machine) return false;
      cluster_id = UNKNOWN_CLUSTER;
      await database.transact((tx) => store.setCluster(tx, { node_id, holder }, UNKNOWN_CLUSTER));
      return await store.isAnyOtherUsing(database.queries, { cluster_id: machine.node_id, node_id });
    },
    cluster_lease,
    heldIds,
    /** Whether another process holds this machine: a copy of its data directory was started. */
    isReplaced: () => is_replaced,
    /** The machines as this process saw them last. */
    lastRead: () => last_read,
    /** Adds a function that ends what is left of this machine's servers after its loss, before it takes work again. */
    onDeclaredLost(endServers: () => Promise<void>): void {
      declaredLostListeners.push(endServers);
    },
  };
}
