import { after, type Clock } from '../../../platform/clock.ts';
import type { Database, Queries, Tx } from '../../../platform/database/database.ts';
import { assert } from '../../../platform/errors.ts';
import type { Events } from '../../../platform/events.ts';
import type { Builds } from '../../builds/builds.ts';
import type { Machines } from '../../machines/machines.ts';
import type { Logs } from '../logs/logs.ts';
import type { Runtime } from '../runtimes/runtime.ts';
import { assignedPortsOf, assignPorts, countPorts, portsAt } from '../server-port-rules.ts';
import { assignServer } from '../store.ts';
import type { PlacedServer, Room, WaitReason } from '../tables.ts';
import { shareRoom } from './fair-shares.ts';
import { findFreePorts } from './free-ports.ts';
import { findLack, type MachineLimits, MachineRoom, portsAssignedTo, reduceRoom, usedShareOf } from './machine-room.ts';
import { NextRounds } from './next-rounds.ts';
import { OtherMachines } from './other-machines.ts';
import * as portsStore from './ports-store.ts';
import { createWaitReasons } from './wait-reasons.ts';
import * as waitingStore from './waiting-store.ts';

/** Time before a released port is assigned again, because players of its previous server may still connect to it. */
const PORT_REUSED_AFTER_MS = 60_000;
const TAKEN_AT_ONCE_MAX = 32;
/** Time before waiting servers are placed again after a failure. */
const AGAIN_AFTER_FAILURE_MS = 2_000;

/** The machine of this process, as its servers need it. */
export interface PlacementMachine extends MachineLimits {
  node_id: string;
  datacenter_id: string;
  /** Address at which servers reach the service. */
  api_url: string;
  servers_max: number;
  /** Maximum of servers for the games of one developer group. */
  servers_per_group_max: number;
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
 * assigns ports to each. Machines place concurrently and take different servers. A machine counts only its own servers,
 * so its quotas hold with any number of processes. `placeAgainIn` schedules another round: for the next restart; after a
 * failure; when another machine has not taken a server that this one left to it; and when it is time to say why a server
 * still waits.
 */
export function createPlacement(dependencies: PlacementDependencies, placeAgainIn: (ms: number) => void) {
  const { database, clock, events, machine, runtime, machines, builds, developerGroupsOf } = dependencies;
  const { queries } = database;
  const machine_room = new MachineRoom(machine);
  const next_rounds = new NextRounds(placeAgainIn);
  const other_machines = new OtherMachines({ machines, builds, next_rounds });
  const waits = createWaitReasons(dependencies);
  /** Until when nothing is placed after a failure, in the time of `performance.now()`. */
  let paused_until = 0;

  /**
   * Takes waiting servers while the machine has room for them. Returns how many it took. A failure is reported, and delays
   * no step of the servers that the machine has.
   */
  async function takeWaiting(on_machine: PlacedServer[]): Promise<number> {
    if (paused_until > performance.now()) return 0;
    try {
      return await placeServers(on_machine);
    } catch (cause) {
      paused_until = performance.now() + AGAIN_AFTER_FAILURE_MS;
      events.emit({ event: 'servers_not_placed', cause });
      placeAgainIn(AGAIN_AFTER_FAILURE_MS);
      return 0;
    }
  }

  async function placeServers(on_machine: PlacedServer[]): Promise<number> {
    const now = clock.now();
    const queue = { datacenter_id: machine.datacenter_id, now };
    const [{ is_any_due, next_start }, ending] = await Promise.all([
      waitingStore.readWaiting(queries, queue),
      waitingStore.selectEndingUnplaced(queries, machine.datacenter_id, TAKEN_AT_ONCE_MAX),
    ]);
    next_rounds.awaitStart(next_start, now);
    if (!is_any_due && ending.length === 0) return 0;
    const left = machine_room.beside(on_machine, await readUnavailablePorts(queries, on_machine, releasedBefore()));
    const filter = { ...filterFor(left), counted_max: TAKEN_AT_ONCE_MAX };
    const all_namespaces = await waitingStore.selectWaitingNamespaces(queries, queue, filter);
    const used = Math.max(on_machine.length / machine.servers_max, usedShareOf(machine_room.whole, left));
    const namespaces = await other_machines.selectDueToTake(all_namespaces, used);
    const { to_take, wait_reasons } = await planShares(namespaces, on_machine, left);
    const is_nothing_to_take = to_take.size === 0 && ending.length === 0;
    const assigned = is_nothing_to_take ? NOTHING_ASSIGNED : await assignServers({ to_take, ending, on_machine, now });
    for (const { namespace_id, server_id } of namespaces) {
      const reason = assigned.wait_reasons.get(server_id);
      if (reason) wait_reasons.set(namespace_id, reason);
    }
    const { takes_servers } = assigned;
    await waits.record(other_machines.selectDueForReason(namespaces, wait_reasons), { takes_servers, wait_reasons });
    return assigned.count;
  }

  const filterFor = (left: Room) => ({ node_id: machine.node_id, ...machine_room.filterFor(left) });
  const releasedBefore = () => after(clock.now(), -PORT_REUSED_AFTER_MS);

  /**
   * Returns the ports that no server can be given: those that other servers have or had a moment ago, and those in their
   * ranges.
   */
  async function readUnavailablePorts(
    connection: Queries,
    on_machine: PlacedServer[],
    released_before: Date,
  ): Promise<Set<number>> {
    const reserved = await portsStore.selectUnavailablePorts(connection, machine.node_id, released_before);
    return reserved.union(machine_room.portsInRanges(on_machine));
  }

  /** Returns how many servers of each namespace to take, and why none is taken of others. */
  async function planShares(namespaces: waitingStore.WaitingRow[], on_machine: PlacedServer[], left: Room) {
    const game_ids = new Set([...namespaces, ...on_machine].map(({ game_id }) => game_id));
    const groups = namespaces.length === 0 ? new Map<string, string>() : await developerGroupsOf([...game_ids]);
    const groupOf = ({ game_id }: { game_id: string }) => groups.get(game_id) ?? game_id;
    const assigned_ports = portsAssignedTo(on_machine);
    const waiting = namespaces.map((namespace) => ({
      ...namespace,
      group_id: groupOf(namespace),
      needs: machine_room.needsOf(namespace.next ?? namespace.first, assigned_ports),
    }));
    const { to_take, wait_reasons } = shareRoom(waiting, {
      ...machine,
      on_machine: on_machine.map((server) => ({ ...server, group_id: groupOf(server) })),
      room: left,
      taken_at_once_max: TAKEN_AT_ONCE_MAX,
    });
    for (const { namespace_id, first } of namespaces) {
      // Smaller servers of its namespace do not wait for it.
      const lack = findLack(left, machine_room.needsOf(first, assigned_ports));
      if (lack && !wait_reasons.has(namespace_id)) wait_reasons.set(namespace_id, lack);
    }
    return { to_take, wait_reasons };
  }

  /** Assigns servers to this machine, with their ports, in one transaction. */
  async function assignServers({ to_take, ending, on_machine, now }: Assignment): Promise<Assigned> {
    return await database.transact(async (tx) => {
      // Keeps the machine from being declared lost before the servers are assigned to it.
      const held = await machines.lockHeld(tx);
      if (!held) return NOTHING_ASSIGNED;
      const { takes_servers } = held;
      const released_before = releasedBefore();
      const unavailable_ports = await readUnavailablePorts(tx, on_machine, released_before);
      const assigned_ports = portsAssignedTo(on_machine);
      let left = machine_room.beside(on_machine, unavailable_ports);
      const filter = { ...filterFor(left), counts: to_take };
      const queue = { datacenter_id: machine.datacenter_id, now };
      const chosen = takes_servers ? await waitingStore.lockWaiting(tx, queue, filter) : [];
      const assigned: Assigned = { count: 0, takes_servers, wait_reasons: new Map() };
      // Servers that end before they start need no room; they are taken only to be ended.
      for (const server of await waitingStore.lockUnplaced(tx, [...chosen, ...ending])) {
        const { server_id, destroyed_at } = server;
        const needs = machine_room.needsOf(server, assigned_ports);
        const lack = destroyed_at ? undefined : findLack(left, needs);
        if (lack) {
          assigned.wait_reasons.set(server_id, lack);
          continue;
        }
        const ports = await reservePorts(tx, machine, server, { released_before, unavailable_ports });
        if (!ports) {
          assigned.wait_reasons.set(server_id, 'no_ports');
          // Fewer than `needs.ports` are free, so other programs use at least the rest of the room.
          machine_room.noteForeignPorts(left.ports - needs.ports + 1);
          // Servers that need as many ports are not tried in this round.
          left = { ...left, ports: needs.ports - 1 };
          continue;
        }
        if (!destroyed_at) left = reduceRoom(left, needs);
        for (const port of assignedPortsOf(ports)) assigned_ports.add(port);
        for (const port of machine_room.portsInRanges([{ ports }])) unavailable_ports.add(port);
        await assignServer(tx, server_id, { node_id: machine.node_id, ports: withAddress(server_id, ports) });
        assigned.count += 1;
      }
      return assigned;
    });
  }

  /**
   * Returns ports with their host, if it is known. A server may call the service before its start is recorded, and its
   * lobby must have an address then.
   */
  function withAddress(server_id: string, ports: PlacedServer['ports']): PlacedServer['ports'] {
    return runtime.host === undefined ? ports : portsAt({ server_id, host: runtime.host }, ports);
  }

  return { takeWaiting };
}

/** What to assign to the machine. */
interface Assignment {
  /** How many servers to take, by namespace. */
  to_take: ReadonlyMap<string, number>;
  /** Servers that end before they start. */
  ending: string[];
  /** The servers of the machine. */
  on_machine: PlacedServer[];
  now: Date;
}

interface Assigned {
  /** How many servers the machine took. */
  count: number;
  takes_servers: boolean;
  /** Why it did not take servers that it had chosen, by server. */
  wait_reasons: Map<string, WaitReason>;
}

const NOTHING_ASSIGNED: Assigned = { count: 0, takes_servers: true, wait_reasons: new Map() };

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
  const are_reserved = await portsStore.reservePorts(tx, { node_id, server_id }, free, released_before);
  assert(are_reserved, 'ports that no server has can be reserved');
  return assignPorts(ports, free, relayed);
}
