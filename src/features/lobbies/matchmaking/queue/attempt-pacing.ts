import { setTimeout as pause } from 'node:timers/promises';

/** Number of waiting finds of a namespace that try again at once after each change. */
const FIRST_MAX = 64;
/** Time between two attempts of the others. */
const PAUSE_MS = 1_000;

/** A waiting find whose attempts are paced. */
export interface PacedFind {
  readonly namespace_id: string;
  /** Aborted once it is one of the first finds of its namespace. */
  readonly first: AbortController;
  tried_at: number;
}

/**
 * Paces the attempts of waiting finds. After each change of a namespace, a few of its finds could get a seat, and usually the
 * first of them. If all tried at once, long queues of busy games would keep the process from other work.
 */
export class AttemptPacing {
  readonly #pause_ms: number;
  /** The waiting finds of each namespace, in the order in which they came. */
  readonly #finds = new Map<string, Set<PacedFind>>();

  constructor(pause_ms = PAUSE_MS) {
    this.#pause_ms = pause_ms;
  }

  add(namespace_id: string): PacedFind {
    const find = { namespace_id, first: new AbortController(), tried_at: Number.NEGATIVE_INFINITY };
    const finds = this.#finds.get(namespace_id) ?? new Set();
    this.#finds.set(namespace_id, finds.add(find));
    if (finds.size <= FIRST_MAX) find.first.abort();
    return find;
  }

  remove(find: PacedFind): void {
    const finds = this.#finds.get(find.namespace_id);
    if (!finds?.delete(find)) return;
    if (finds.size === 0) this.#finds.delete(find.namespace_id);
    // The find that has moved up.
    finds
      .values()
      .drop(FIRST_MAX - 1)
      .next()
      .value?.first.abort();
  }

  /** Waits until a find may try again: at once if it is one of the first, otherwise some time after its last attempt. */
  async waitForAttempt(find: PacedFind, { signal, ends_at }: { signal: AbortSignal; ends_at: number }): Promise<void> {
    const until = Math.min(find.tried_at + this.#pause_ms, ends_at);
    const pause_ms = until - performance.now();
    if (pause_ms > 0 && !find.first.signal.aborted) {
      await pause(pause_ms, undefined, { signal: AbortSignal.any([signal, find.first.signal]) }).catch(() => {});
    }
    find.tried_at = performance.now();
  }
}
