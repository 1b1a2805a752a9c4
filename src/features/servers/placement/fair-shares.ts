import type { Room, WaitReason } from '../tables.ts';

/** A namespace with servers that wait for a machine. */
export interface WaitingNamespace {
  namespace_id: string;
  /** The developer group of its game. */
  group_id: string;
  /** Number of its waiting servers for which the machine has room, up to what it takes at once. */
  waiting: number;
  /** When its first waiting server started to wait. */
  since: Date;
  /** What the first of them needs, or if there is none, the first waiting server. The others are assumed to need the same. */
  needs: Room;
}

interface MachineRoom {
  /** The servers that it runs now. */
  running: { namespace_id: string; group_id: string }[];
  /** What it has left. */
  room: Room;
  servers_max: number;
  servers_per_group_max: number;
  taken_at_once_max: number;
}

interface Turns {
  /** The number of servers to take, by namespace. */
  to_take: Map<string, number>;
  /** Why the machine takes no server of a waiting namespace. */
  wait_reasons: Map<string, WaitReason>;
}

/** Returns what of a server's needs a machine does not have; undefined if it has room for the server. */
export function findLack(room: Room, needs: Room): Extract<WaitReason, 'no_ports' | 'no_resources'> | undefined {
  if (needs.ports > room.ports) return 'no_ports';
  return needs.cpu > room.cpu || needs.memory > room.memory ? 'no_resources' : undefined;
}

/** How long a full machine waits before it takes a server. An emptier one waits less, so that it comes first. */
const FULL_WAITS_MS = 100;
/** How much longer a machine waits that would have to unpack the build first. */
const UNPACKING_WAITS_MS = 20;

/** Returns how long a machine waits before it takes a server that another machine may take. */
export function pauseBeforeTaking({ used, is_unpacked }: { used: number; is_unpacked: boolean }): number {
  return Math.min(used, 1) * FULL_WAITS_MS + (is_unpacked ? 0 : UNPACKING_WAITS_MS);
}

/** Returns how much of its room a machine has used: the largest share of all that is limited. */
export function usedShareOf(all: Room, left: Room): number {
  const limited = (['ports', 'cpu', 'memory'] as const).filter((what) => Number.isFinite(all[what]));
  return Math.max(0, ...limited.map((what) => 1 - left[what] / all[what]));
}

/** Returns the room that is left beside a server. */
export const reduceRoom = (room: Room, { ports, cpu, memory }: Room): Room => ({
  ports: room.ports - ports,
  cpu: room.cpu - cpu,
  memory: room.memory - memory,
});

/**
 * Shares the room of a machine between namespaces. Each server to take is one of the namespace with the fewest servers
 * there, and among equals of the one that has waited longest. No developer group exceeds its quota.
 */
export function shareRoom(waiting: WaitingNamespace[], machine: MachineRoom): Turns {
  const { running, servers_max, servers_per_group_max, taken_at_once_max } = machine;
  let { room: left } = machine;
  const of_namespace = new Counts(running.map(({ namespace_id }) => namespace_id));
  const of_group = new Counts(running.map(({ group_id }) => group_id));
  const chosen = new Counts([]);
  const hasQuotaLeft = ({ group_id }: WaitingNamespace) => of_group.get(group_id) < servers_per_group_max;
  const free = servers_max - running.length;
  const oldest_first = waiting.toSorted((one, other) => one.since.getTime() - other.since.getTime());

  const canTake = (one: WaitingNamespace) =>
    chosen.get(one.namespace_id) < one.waiting && hasQuotaLeft(one) && findLack(left, one.needs) === undefined;

  for (let turns = Math.min(free, taken_at_once_max); turns > 0; turns -= 1) {
    const candidates = oldest_first.filter(canTake);
    const [first, ...others] = candidates;
    if (!first) break;
    const next = others.reduce(
      (least, one) => (of_namespace.get(one.namespace_id) < of_namespace.get(least.namespace_id) ? one : least),
      first,
    );
    chosen.add(next.namespace_id);
    of_namespace.add(next.namespace_id);
    of_group.add(next.group_id);
    left = reduceRoom(left, next.needs);
  }

  const is_full = free <= chosen.sum;
  const wait_reasons = waiting.flatMap((one): [string, WaitReason][] => {
    if (chosen.get(one.namespace_id) > 0) return [];
    if (!hasQuotaLeft(one)) return [[one.namespace_id, 'group_quota']];
    const reason = is_full ? 'machine_full' : findLack(left, one.needs);
    return reason === undefined ? [] : [[one.namespace_id, reason]];
  });
  return { to_take: chosen.all, wait_reasons: new Map(wait_reasons) };
}

/**
 * Chooses the servers to start now, in turns of their namespaces. A namespace may start another server only while it
 * has fewer starts in progress than starts are free, so slow starts of one namespace leave room for the others.
 */
export function shareStarts<Server extends { namespace_id: string }>(
  waiting: Server[],
  { under_way, starts_max }: { under_way: { namespace_id: string }[]; starts_max: number },
): Server[] {
  const queues = Map.groupBy(waiting, ({ namespace_id }) => namespace_id);
  const counts = new Counts(under_way.map(({ namespace_id }) => namespace_id));
  const chosen: Server[] = [];
  for (;;) {
    const free = starts_max - counts.sum;
    const [first, ...others] = [...queues].filter(([name, queue]) => queue.length > 0 && counts.get(name) < free);
    if (!first) return chosen;
    const next = others.reduce((least, one) => (counts.get(one[0]) < counts.get(least[0]) ? one : least), first);
    const [namespace_id, queue] = next;
    chosen.push(...queue.splice(0, 1));
    counts.add(namespace_id);
  }
}

/** Chooses servers in turns of their namespaces, the first of each in order. */
export function takeInTurns<Server extends { namespace_id: string }>(servers: Server[], count_max: number): Server[] {
  const queues = [...Map.groupBy(servers, ({ namespace_id }) => namespace_id).values()];
  const chosen: Server[] = [];
  const count = Math.min(count_max, servers.length);
  for (let turn = 0; chosen.length < count; turn += 1) chosen.push(...queues.flatMap((queue) => queue[turn] ?? []));
  return chosen.slice(0, count);
}

class Counts {
  readonly all = new Map<string, number>();
  sum = 0;

  constructor(keys: string[]) {
    for (const key of keys) this.add(key);
  }

  get(key: string): number {
    return this.all.get(key) ?? 0;
  }

  add(key: string): void {
    this.all.set(key, this.get(key) + 1);
    this.sum += 1;
  }
}
