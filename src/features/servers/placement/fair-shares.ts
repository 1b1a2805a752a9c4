import type { Room, WaitReason } from '../tables.ts';
import { findLack, reduceRoom } from './machine-room.ts';

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

/** A machine whose room is shared. */
interface SharedMachine {
  /** The servers that it has taken and that have not ended. */
  on_machine: { namespace_id: string; group_id: string }[];
  /** What it has left. */
  room: Room;
  servers_max: number;
  servers_per_group_max: number;
  taken_at_once_max: number;
}

interface Shares {
  /** The number of servers to take, by namespace. */
  to_take: Map<string, number>;
  /** Why the machine takes no server of a waiting namespace. */
  wait_reasons: Map<string, WaitReason>;
}

/**
 * Shares the room of a machine between namespaces. Each server to take is one of the namespace with the fewest servers
 * there, and among equals of the one that has waited longest. No developer group exceeds its quota.
 */
export function shareRoom(waiting: WaitingNamespace[], machine: SharedMachine): Shares {
  const { on_machine, servers_max, servers_per_group_max, taken_at_once_max } = machine;
  let { room: left } = machine;
  const by_namespace = new Counts(on_machine.map(({ namespace_id }) => namespace_id));
  const by_group = new Counts(on_machine.map(({ group_id }) => group_id));
  const chosen = new Counts([]);
  const hasQuotaLeft = ({ group_id }: WaitingNamespace) => by_group.get(group_id) < servers_per_group_max;
  const free = servers_max - on_machine.length;
  const oldest_first = waiting.toSorted((one, other) => one.since.getTime() - other.since.getTime());

  const canTake = (namespace: WaitingNamespace) =>
    chosen.get(namespace.namespace_id) < namespace.waiting &&
    hasQuotaLeft(namespace) &&
    findLack(left, namespace.needs) === undefined;

  for (let turns = Math.min(free, taken_at_once_max); turns > 0; turns -= 1) {
    const next = leastBy(oldest_first.filter(canTake), ({ namespace_id }) => by_namespace.get(namespace_id));
    if (!next) break;
    chosen.add(next.namespace_id);
    by_namespace.add(next.namespace_id);
    by_group.add(next.group_id);
    left = reduceRoom(left, next.needs);
  }

  const is_full = free <= chosen.sum;
  function reasonOf(namespace: WaitingNamespace): WaitReason | undefined {
    if (chosen.get(namespace.namespace_id) > 0) return undefined;
    if (!hasQuotaLeft(namespace)) return 'group_quota';
    return is_full ? 'machine_full' : findLack(left, namespace.needs);
  }
  const wait_reasons = waiting.flatMap((namespace): [string, WaitReason][] => {
    const reason = reasonOf(namespace);
    return reason === undefined ? [] : [[namespace.namespace_id, reason]];
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
    const startable = [...queues].filter(([name, queue]) => queue.length > 0 && counts.get(name) < free);
    const next = leastBy(startable, ([name]) => counts.get(name));
    if (!next) return chosen;
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

/** Returns the first of the items with the least count; undefined if there are none. */
function leastBy<Item>(items: Item[], countOf: (item: Item) => number): Item | undefined {
  let least: Item | undefined;
  for (const item of items) if (least === undefined || countOf(item) < countOf(least)) least = item;
  return least;
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
