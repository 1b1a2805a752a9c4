import type { TreeProcess } from '../linux/process-trees.ts';

/** The latest reading of a server's processes. */
interface TreeReading {
  processes: Map<number, TreeProcess>;
  used_ms: number;
}

/**
 * Creates the sum of the processor time of process trees, from reading to reading. It keeps the time of processes that
 * have ended. When a parent waits for an ended child, the kernel adds the child's time to the parent's; that time is not
 * counted again.
 */
export function createUsage() {
  const readings = new Map<string, TreeReading>();

  return {
    /**
     * Adds a reading. Returns the time that each server has used. A process that ended before the first reading counts
     * only if its parent waited for it.
     */
    add(trees: ReadonlyMap<string, readonly TreeProcess[]>): Map<string, number> {
      const used = new Map<string, number>();
      for (const server_id of readings.keys()) if (!trees.get(server_id)?.length) readings.delete(server_id);
      for (const [server_id, tree] of trees) {
        if (tree.length === 0) continue;
        const processes = new Map(tree.map((one) => [one.pid, one]));
        const before = readings.get(server_id) ?? { processes: new Map(), used_ms: 0 };
        const used_ms = before.used_ms + growthOf(before.processes, processes);
        readings.set(server_id, { processes, used_ms });
        used.set(server_id, used_ms);
      }
      return used;
    },
  };
}

/** Returns the processor time used between two readings of one tree. */
export function growthOf(before: ReadonlyMap<number, TreeProcess>, after: ReadonlyMap<number, TreeProcess>): number {
  const survivorOf = ({ pid, start_ticks }: TreeProcess) => {
    const now = after.get(pid);
    return now?.start_ticks === start_ticks ? now : undefined;
  };
  // Time that a surviving ancestor reports for its children, although it was already counted while they ran.
  const counted_ms = new Map<number, number>();
  for (const ended of before.values()) {
    if (survivorOf(ended)) continue;
    const heir = findHeir(ended, before, survivorOf);
    if (heir !== undefined) counted_ms.set(heir, (counted_ms.get(heir) ?? 0) + ended.own_ms + ended.waited_ms);
  }
  let growth_ms = 0;
  for (const now of after.values()) {
    const earlier = before.get(now.pid);
    const was = earlier?.start_ticks === now.start_ticks ? earlier : { own_ms: 0, waited_ms: 0 };
    growth_ms += now.own_ms - was.own_ms;
    growth_ms += Math.max(0, now.waited_ms - was.waited_ms - (counted_ms.get(now.pid) ?? 0));
  }
  return growth_ms;
}

/** Returns the nearest ancestor of a process that still runs. */
function findHeir(
  ended: TreeProcess,
  before: ReadonlyMap<number, TreeProcess>,
  survivorOf: (one: TreeProcess) => TreeProcess | undefined,
): number | undefined {
  const passed = new Set<number>();
  for (let parent = before.get(ended.parent); parent && !passed.has(parent.pid); parent = before.get(parent.parent)) {
    if (survivorOf(parent)) return parent.pid;
    passed.add(parent.pid);
  }
  return undefined;
}
