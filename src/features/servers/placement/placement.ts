import { LRUCache } from 'lru-cache';
import { after, type Clock } from '../../../platform/clock.ts';
import type { Database, Queries, Tx } from '../../../platform/database/database.ts';
import { assert } from '../../../platform/errors.ts';
import type { Events } from '../../../platform/events.ts';
import type { Builds } from '../../builds/builds.ts';
import type { Machines } from '../../machines/machines.ts';
import type { Logs } from '../logs/logs.ts';
import type { Runtime, ServerResources } from '../runtimes/runtime.ts';
import {
  assignedPortsOf,
  assignPorts,
  countPorts,
  portsAt,
  RANGE_PORTS_MAX,
  type RelayedProtocols,
  rangePortsOf,
} from '../server-port-rules.ts';
import * as store from '../store.ts';
import type { PlacedServer, Room, WaitReason } from '../tables.ts';
import { findLack, pauseBeforeTaking, reduceRoom, shareRoom, usedShareOf } from './fair-shares.ts';
import { findFreePorts } from './free-ports.ts';
import { createWaitReasons } from './wait-reasons.ts';
import * as waitingStore from './waiting-store.ts';

/** Time before a released port is assigned again, because players of its previous server may still connect to it. */
const PORT_REUSED_AFTER_MS = 60_000;
const TAKEN_AT_ONCE_MAX = 32;
/**
 * How long this machine remembers how many ports other programs use. During that time it does not try servers that need more
 * ports than are left.
 */
const FOREIGN_PORTS_KNOWN_FOR_MS = 5_000;
const SEEN_MAX = 10_000;
/** A timer may be early by less than this. */
const TIMER_MS = 1;
/** How long a server has to wait until this machine says why, while another one may take it. */
const EXPLAINED_AFTER_MS = 1_000;

/** The settings of a machine that runs game servers. */
interface MachineSettings {
  server_ports: { min: number; max: number };
  /** The ports that ranges of servers take from other servers; by default `server_ports`. */
  range_ports?: { min: number; max: number };
  servers_max: number;
  /** Maximum of servers for the games of one developer group. */
  servers_per_group_max: number;
  /** What all servers of the machine may need together; undefined for no limit. */
  resources_max: ServerResources | undefined;
  relayed: RelayedProtocols;
}

/** The machine of this process, as its servers need it. */
export interface PlacementMachine extends MachineSettings {
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
  machine: PlacementMachine;
  runtime: Pick<Runtime, 'host'>;
  machines: Pick<Machines, 'lockHeld' | 'draining' | 'areAllDraining' | 'isOtherSeenTakingServers'>;
  builds: Pick<Builds, 'isUnpacked'>;
  /** Returns the developer groups of games, by game. */
  developerGroupsOf(game_ids: string[]): Promise<Map<string, string>>;
}

/**
 * Creates the step that places waiting servers of this datacenter on this machine, in turns of their namespaces, and
 * assigns ports to each. Machines place concurrently and take different servers. A machine counts only its
 * own servers, so its quotas hold with any number of processes. `placeAgainIn` schedules another round: for the next restart,
 * in case a machine with more room, or with the build, does not take a server that this one left to it, and to say why a
 * server waits that no other machine has taken.
 */
export function createPlacement(dependencies: PlacementDependencies, placeAgainIn: (ms: number) => void) {
  const { database, clock, machine, runtime, machines, developerGroupsOf, builds } = dependencies;
  const { range_ports = machine.server_ports } = machine;
  const waits = createWaitReasons(dependencies);
  /** Since when this machine has seen servers wait, in the time of `performance.now()`. */
  const seen_since = new LRUCache<string, number>({ max: SEEN_MAX });

  /** Takes waiting servers while the machine has room for them. Returns how many it took. */
  async function takeWaiting(running: PlacedServer[]): Promise<number> {
    const { queries } = database;
    const now = clock.now();
    const queue = { datacenter_id: machine.datacenter_id, now };
    const [{ is_any_due, next_start }, ending] = await Promise.all([
      waitingStore.readWaiting(queries, queue),
      waitingStore.selectEndingUnplaced(queries, machine.datacenter_id, TAKEN_AT_ONCE_MAX),
    ]);
    awaitStart(next_start, now);
    if (!is_any_due && ending.length === 0) return 0;
    const room = roomBeside(running, await readUnavailablePorts(queries, running, releasedBefore()));
    const filter = { ...filterFor(room), counted_max: TAKEN_AT_ONCE_MAX };
    const all_waiting = await waitingStore.selectWaiting(queries, queue, filter);
    const used = Math.max(running.length / machine.servers_max, usedShareOf(wholeRoom(), room));
    const waiting = await keepForThisMachine(all_waiting, used);
    const { to_take, wait_reasons } = await share(waiting, running, room);
    const { count, takes_servers, ...placed } =
      to_take.size === 0 && ending.length === 0 ? NOTHING_PLACED : await take({ to_take, ending, running, now });
    for (const { namespace_id, server_id } of waiting) {
      const reason = placed.wait_reasons.get(server_id);
      if (reason) wait_reasons.set(namespace_id, reason);
    }
    await waits.record(keepForExplanation(waiting, wait_reasons), { takes_servers, wait_reasons });
    return count;
  }

  /** The time of a restart for which a round was requested. */
  let awaited_start = 0;

  /** Requests a round when the next restart is due, unless that was done. */
  function awaitStart(next_start: Date | undefined, now: Date): void {
    if (next_start === undefined || next_start.getTime() === awaited_start) return;
    awaited_start = next_start.getTime();
    placeAgainIn(awaited_start - now.getTime() + TIMER_MS);
  }

  /** Returns the namespaces whose servers this machine takes now. It leaves the others to a better machine for up to 120 ms. */
  async function keepForThisMachine(
    waiting: waitingStore.WaitingRow[],
    used: number,
  ): Promise<waitingStore.WaitingRow[]> {
    if (!machines.isOtherSeenTakingServers()) return waiting;
    const due: waitingStore.WaitingRow[] = [];
    let again_in_ms = Number.POSITIVE_INFINITY;
    for (const row of waiting) {
      const waited_ms = timeSeen(row);
      const wait_ms = pauseBeforeTaking({ used, is_unpacked: await builds.isUnpacked(row.build_id) });
      if (waited_ms >= wait_ms) due.push(row);
      else again_in_ms = Math.min(again_in_ms, wait_ms - waited_ms);
    }
    if (Number.isFinite(again_in_ms)) requestRoundIn(again_in_ms);
    return due;
  }

  /**
   * Returns the namespaces whose first server no other machine takes soon. Another machine may take a server at once that this
   * one cannot take.
   */
  function keepForExplanation(
    waiting: waitingStore.WaitingRow[],
    wait_reasons: ReadonlyMap<string, WaitReason>,
  ): waitingStore.WaitingRow[] {
    if (!machines.isOtherSeenTakingServers()) return waiting;
    const isDue = (row: waitingStore.WaitingRow) => timeSeen(row) >= EXPLAINED_AFTER_MS;
    const later = waiting.filter((row) => wait_reasons.has(row.namespace_id) && !isDue(row));
    if (later.length > 0) requestRoundIn(EXPLAINED_AFTER_MS - Math.max(...later.map(timeSeen)));
    return waiting.filter(isDue);
  }

  /** When the next requested round is, in the time of `performance.now()`. */
  let next_round_at = 0;

  /**
   * Requests a round, unless an earlier one is requested, which will request the next. So the number of timers does not grow
   * with the servers that others take.
   */
  function requestRoundIn(ms: number): void {
    const now = performance.now();
    if (next_round_at > now && next_round_at < now + ms + TIMER_MS) return;
    next_round_at = now + ms;
    placeAgainIn(ms + TIMER_MS);
  }

  /** Returns for how long this machine has seen a server wait, in milliseconds. */
  function timeSeen({ server_id }: waitingStore.WaitingRow): number {
    const now = performance.now();
    const since = seen_since.get(server_id) ?? now;
    seen_since.set(server_id, since);
    return now - since;
  }

  /**
   * How many ports other programs use at least, and until when that is assumed, in the time of `performance.now()`.
   */
  let foreign = { ports: 0, until: 0 };

  /** Returns the filter for the waiting servers that fit into what this machine has left. */
  function filterFor(room: Room): waitingStore.RoomFilter {
    const { node_id, relayed } = machine;
    return { node_id, relayed, room, range_ports, range_ports_max: RANGE_PORTS_MAX };
  }

  /**
   * Returns what a server needs while other servers have `assigned_ports`. If its ranges are too long or overlap these,
   * it needs infinitely many ports, so the machine has no room for it.
   */
  function needsOf(
    { ports, cpu, memory }: Pick<PlacedServer, 'ports' | 'cpu' | 'memory'>,
    assigned_ports: ReadonlySet<number>,
  ): Room {
    const of_ranges = rangePortsOf(ports, range_ports);
    const has_ranges = of_ranges.length <= RANGE_PORTS_MAX && !of_ranges.some((port) => assigned_ports.has(port));
    return { ports: has_ranges ? countPorts(ports, machine.relayed) : Number.POSITIVE_INFINITY, cpu, memory };
  }

  /** Returns what this machine has for servers. */
  function wholeRoom(): Room {
    const { server_ports, resources_max } = machine;
    return { ports: server_ports.max - server_ports.min + 1, ...(resources_max ?? NO_LIMITS) };
  }

  /** Returns what this machine has left for servers. */
  function roomBeside(running: PlacedServer[], unavailable_ports: ReadonlySet<number>): Room {
    const { server_ports } = machine;
    const whole = wholeRoom();
    const isInRange = (port: number) => port >= server_ports.min && port <= server_ports.max;
    const foreign_ports = performance.now() < foreign.until ? foreign.ports : 0;
    const used = [...unavailable_ports].filter(isInRange).length + foreign_ports;
    const beside_ports = { ...whole, ports: Math.max(whole.ports - used, 0) };
    // Their ports are among the unavailable ones.
    return running.reduce((left, { cpu, memory }) => reduceRoom(left, { ports: 0, cpu, memory }), beside_ports);
  }

  /** Returns the ports that no server can be given: those that other servers have or had a moment ago, and those in their ranges. */
  async function readUnavailablePorts(
    queries: Queries,
    running: PlacedServer[],
    released_before: Date,
  ): Promise<Set<number>> {
    const reserved = await store.selectUnavailablePorts(queries, machine.node_id, released_before);
    return reserved.union(new Set(running.flatMap(({ ports }) => rangePortsOf(ports, range_ports))));
  }

  const portsAssignedTo = (running: PlacedServer[]) => new Set(running.flatMap(({ ports }) => assignedPortsOf(ports)));
  const releasedBefore = () => after(clock.now(), -PORT_REUSED_AFTER_MS);

  async function share(waiting: waitingStore.WaitingRow[], running: PlacedServer[], room: Room) {
    const game_ids = new Set([...waiting, ...running].map(({ game_id }) => game_id));
    const groups = waiting.length === 0 ? new Map<string, string>() : await developerGroupsOf([...game_ids]);
    const withGroup = <Of extends { game_id: string }>(one: Of) => ({
      ...one,
      group_id: groups.get(one.game_id) ?? one.game_id,
    });
    const assigned_ports = portsAssignedTo(running);
    const namespaces = waiting.map((one) => ({
      ...withGroup(one),
      needs: needsOf(one.next ?? one.first, assigned_ports),
    }));
    const machine_room = {
      ...machine,
      running: running.map(withGroup),
      room,
      taken_at_once_max: TAKEN_AT_ONCE_MAX,
    };
    const { to_take, wait_reasons } = shareRoom(namespaces, machine_room);
    for (const { namespace_id, first } of waiting) {
      // Smaller servers of its namespace do not wait for it.
      const lack = findLack(room, needsOf(first, assigned_ports));
      if (lack && !wait_reasons.has(namespace_id)) wait_reasons.set(namespace_id, lack);
    }
    return { to_take, wait_reasons };
  }

  async function take({ to_take, ending, running, now }: Taking): Promise<Placed> {
    return await database.transact(async (tx) => {
      // Keeps the machine from being declared lost before the servers are assigned to it.
      const held = await machines.lockHeld(tx);
      if (!held) return NOTHING_PLACED;
      const { takes_servers } = held;
      const released_before = releasedBefore();
      const unavailable_ports = await readUnavailablePorts(tx, running, released_before);
      const assigned_ports = portsAssignedTo(running);
      let room = roomBeside(running, unavailable_ports);
      const filter = { ...filterFor(room), counts: to_take };
      const queue = { datacenter_id: machine.datacenter_id, now };
      const chosen = takes_servers ? await waitingStore.lockWaiting(tx, queue, filter) : [];
      // Servers that end before they start need no room; they are taken only to be ended.
      const waiting = await waitingStore.lockUnplaced(tx, [...chosen, ...ending]);
      const placed: Placed = { count: 0, takes_servers, wait_reasons: new Map() };
      for (const server of waiting) {
        const needs = needsOf(server, assigned_ports);
        const lack = server.destroyed_at ? undefined : findLack(room, needs);
        const reserved = lack
          ? undefined
          : await reservePorts(tx, machine, server, { released_before, unavailable_ports });
        if (!reserved) {
          placed.wait_reasons.set(server.server_id, lack ?? 'no_ports');
          if (lack) continue;
          // Fewer than `needs.ports` are free, so other programs use at least the rest of the room.
          noteForeignPorts(room.ports - needs.ports + 1);
          // Servers that need as many ports are not tried in this round.
          room = { ...room, ports: needs.ports - 1 };
          continue;
        }
        if (!server.destroyed_at) room = reduceRoom(room, needs);
        for (const port of assignedPortsOf(reserved)) assigned_ports.add(port);
        for (const port of rangePortsOf(reserved, range_ports)) unavailable_ports.add(port);
        // A server may call the service before its start is recorded, and its lobby must have an address then.
        const ports =
          runtime.host === undefined
            ? reserved
            : portsAt({ server_id: server.server_id, host: runtime.host }, reserved);
        await store.assignServer(tx, server.server_id, { node_id: machine.node_id, ports });
        placed.count += 1;
      }
      return placed;
    });
  }

  function noteForeignPorts(more: number): void {
    const known = performance.now() < foreign.until ? foreign.ports : 0;
    foreign = { ports: known + more, until: performance.now() + FOREIGN_PORTS_KNOWN_FOR_MS };
  }

  return { takeWaiting };
}

interface Taking {
  /** How many servers to take, by namespace. */
  to_take: Map<string, number>;
  /** Servers that end before they start. */
  ending: string[];
  /** The servers of the machine. */
  running: PlacedServer[];
  now: Date;
}

interface Placed {
  /** How many servers the machine took. */
  count: number;
  takes_servers: boolean;
  /** Why it did not take servers that it had chosen, by server. */
  wait_reasons: Map<string, WaitReason>;
}

const NOTHING_PLACED: Placed = { count: 0, takes_servers: true, wait_reasons: new Map() };
const NO_LIMITS: ServerResources = { cpu: Number.POSITIVE_INFINITY, memory: Number.POSITIVE_INFINITY };

/** Reserves free ports for a server and returns its ports. Returns undefined if other programs use too many. */
async function reservePorts(
  tx: Tx,
  { node_id, server_ports, relayed }: PlacementMachine,
  server: PlacedServer,
  { released_before, unavailable_ports }: { released_before: Date; unavailable_ports: Set<number> },
): Promise<PlacedServer['ports'] | undefined> {
  const { server_id, ports, destroyed_at } = server;
  // A server that ends before it starts needs no ports.
  if (destroyed_at) return ports;
  const free = await findFreePorts(server_ports, unavailable_ports, countPorts(ports, relayed));
  if (!free) return undefined;
  for (const port of free) unavailable_ports.add(port);
  const are_reserved = await store.reservePorts(tx, { node_id, server_id }, free, released_before);
  assert(are_reserved, 'ports that no server has can be reserved');
  return assignPorts(ports, free, relayed);
}
