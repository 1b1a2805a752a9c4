import type { ServerResources } from '../runtimes/runtime.ts';
import {
  assignedPortsOf,
  countPorts,
  RANGE_PORTS_MAX,
  type RelayedProtocols,
  rangePortsOf,
} from '../server-port-rules.ts';
import type { PlacedServer, Room, WaitReason } from '../tables.ts';
import type { RoomFilter } from './waiting-store.ts';

/**
 * How long a machine remembers how many ports other programs use. During that time it does not try servers that need more
 * ports than are left.
 */
export const FOREIGN_PORTS_KNOWN_FOR_MS = 5_000;

const NO_LIMITS: ServerResources = { cpu: Number.POSITIVE_INFINITY, memory: Number.POSITIVE_INFINITY };

/** What a machine has for its servers. */
export interface MachineLimits {
  server_ports: { min: number; max: number };
  /** The ports that ranges of servers take from other servers; by default `server_ports`. */
  range_ports?: { min: number; max: number };
  /** What all servers of the machine may need together; undefined for no limit. */
  resources_max: ServerResources | undefined;
  relayed: RelayedProtocols;
}

type WithPorts = Pick<PlacedServer, 'ports'>;
type WithNeeds = Pick<PlacedServer, 'ports' | 'cpu' | 'memory'>;

/** The room of a machine for servers: how much there is, how much servers leave of it, and how much a server needs. */
export class MachineRoom {
  /** What the machine has for servers. */
  readonly whole: Room;
  readonly #limits: Required<MachineLimits>;
  /** How many ports other programs use at least, and until when that is assumed. */
  #foreign = { ports: 0, until_ms: 0 };

  /** `nowMs` is a monotonic clock. */
  constructor(
    limits: MachineLimits,
    private readonly nowMs = () => performance.now(),
  ) {
    const { server_ports, resources_max } = limits;
    this.#limits = { ...limits, range_ports: limits.range_ports ?? server_ports };
    this.whole = { ports: server_ports.max - server_ports.min + 1, ...(resources_max ?? NO_LIMITS) };
  }

  /** Returns what is left beside servers. Their ports are among the unavailable ones. */
  beside(on_machine: WithNeeds[], unavailable_ports: ReadonlySet<number>): Room {
    const { server_ports } = this.#limits;
    const isInRange = (port: number) => port >= server_ports.min && port <= server_ports.max;
    const used_ports = [...unavailable_ports].filter(isInRange).length + this.#countForeignPorts();
    const left = { ...this.whole, ports: Math.max(this.whole.ports - used_ports, 0) };
    return on_machine.reduce((room, { cpu, memory }) => reduceRoom(room, { ports: 0, cpu, memory }), left);
  }

  /**
   * Returns what a server needs while other servers have `assigned_ports`. If its ranges are too long or overlap these,
   * it needs infinitely many ports, so the machine has no room for it.
   */
  needsOf({ ports, cpu, memory }: WithNeeds, assigned_ports: ReadonlySet<number>): Room {
    const { range_ports, relayed } = this.#limits;
    const in_ranges = rangePortsOf(ports, range_ports);
    const has_ranges = in_ranges.length <= RANGE_PORTS_MAX && !in_ranges.some((port) => assigned_ports.has(port));
    return { ports: has_ranges ? countPorts(ports, relayed) : Number.POSITIVE_INFINITY, cpu, memory };
  }

  /** Returns the ports in the ranges of servers. The machine gives them to no other server. */
  portsInRanges(servers: WithPorts[]): Set<number> {
    return new Set(servers.flatMap(({ ports }) => rangePortsOf(ports, this.#limits.range_ports)));
  }

  /** Returns the filter for waiting servers that fit into what the machine has left. It counts as `needsOf` does. */
  filterFor(left: Room): Omit<RoomFilter, 'node_id'> {
    const { range_ports, relayed } = this.#limits;
    return { room: left, range_ports, range_ports_max: RANGE_PORTS_MAX, relayed };
  }

  /** Notes that other programs use more ports, in addition to those that are known. */
  noteForeignPorts(more: number): void {
    const ports = this.#countForeignPorts() + more;
    this.#foreign = { ports, until_ms: this.nowMs() + FOREIGN_PORTS_KNOWN_FOR_MS };
  }

  #countForeignPorts(): number {
    return this.nowMs() < this.#foreign.until_ms ? this.#foreign.ports : 0;
  }
}

/** Returns the ports that servers have from their machine. */
export const portsAssignedTo = (servers: WithPorts[]): Set<number> =>
  new Set(servers.flatMap(({ ports }) => assignedPortsOf(ports)));

/** Returns the room that is left beside a server. */
export const reduceRoom = (room: Room, { ports, cpu, memory }: Room): Room => ({
  ports: room.ports - ports,
  cpu: room.cpu - cpu,
  memory: room.memory - memory,
});

/** Returns what of a server's needs a machine does not have; undefined if it has room for the server. */
export function findLack(room: Room, needs: Room): Extract<WaitReason, 'no_ports' | 'no_resources'> | undefined {
  if (needs.ports > room.ports) return 'no_ports';
  return needs.cpu > room.cpu || needs.memory > room.memory ? 'no_resources' : undefined;
}

/** Returns how much of its room a machine has used: the largest share of all that is limited. */
export function usedShareOf(whole: Room, left: Room): number {
  const limited = (['ports', 'cpu', 'memory'] as const).filter((what) => Number.isFinite(whole[what]));
  return Math.max(0, ...limited.map((what) => 1 - left[what] / whole[what]));
}
