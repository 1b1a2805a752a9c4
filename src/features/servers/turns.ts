import type { WaitReason } from './tables.ts';

/** A namespace with servers that wait for a machine. */
export interface WaitingNamespace {
  namespace_id: string;
  /** The developer group of its game. */
  group_id: string;
  /** Number of its waiting servers, up to what a machine takes at once. */
  waiting: number;
  /** When the first of them started to wait. */
  since: Date;
}

interface Machine {
  /** The servers that it runs now. */
  running: { namespace_id: string; group_id: string }[];
  servers_max: number;
  servers_per_group_max: number;
  taken_at_once_max: number;
}

interface Turns {
  /** The number of servers to take, by namespace. */
  taken: Map<string, number>;
  /** Why the machine takes no server of a waiting namespace. */
  held: Map<string, WaitReason>;
}

/**
 * Shares the room of a machine between namespaces. Each server to take is one of the namespace with the fewest servers
 * there, and among equals of the one that has waited longest. No developer group exceeds its quota.
 */
export function shareRoom(waiting: WaitingNamespace[], machine: Machine): Turns {
  const { running, servers_max, servers_per_group_max, taken_at_once_max } = machine;
  const of_namespace = new Counts(running.map(({ namespace_id }) => namespace_id));
  const of_group = new Counts(running.map(({ group_id }) => group_id));
  const taken = new Counts([]);
  const has_quota_left = ({ group_id }: WaitingNamespace) => of_group.get(group_id) < servers_per_group_max;
  const room = servers_max - running.length;
  const oldest_first = waiting.toSorted((one, other) => one.since.getTime() - other.since.getTime());

  for (let left = Math.min(room, taken_at_once_max); left > 0; left -= 1) {
    const candidates = oldest_first.filter((one) => taken.get(one.namespace_id) < one.waiting && has_quota_left(one));
    const [first, ...others] = candidates;
    if (!first) break;
    const next = others.reduce(
      (least, one) => (of_namespace.get(one.namespace_id) < of_namespace.get(least.namespace_id) ? one : least),
      first,
    );
    taken.add(next.namespace_id);
    of_namespace.add(next.namespace_id);
    of_group.add(next.group_id);
  }

  const is_full = room <= taken.sum;
  const held = waiting.flatMap((one): [string, WaitReason][] => {
    if (taken.get(one.namespace_id) > 0) return [];
    if (!has_quota_left(one)) return [[one.namespace_id, 'group_quota']];
    return is_full ? [[one.namespace_id, 'machine_full']] : [];
  });
  return { taken: taken.all, held: new Map(held) };
}

/**
 * Chooses the servers to start now, in turns of their namespaces. A namespace may start another server only while it
 * has fewer starts in progress than places are free, so slow starts of one namespace leave places to the others.
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

/** Explains to the developer of a server why it waits. */
export function describeWait(reason: WaitReason): string {
  switch (reason) {
    case 'group_quota':
      return "each machine of this region runs the maximum of servers for your group's games (MUSTER_SERVERS_PER_GROUP_MAX): end some, or ask the operator for more";
    case 'machine_full':
      return 'each machine of this region runs its maximum of servers (MUSTER_SERVERS_MAX): try again later, or ask the operator for more';
  }
}
