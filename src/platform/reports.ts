import { LRUCache } from 'lru-cache';

/** Time after which a lasting problem is reported again. */
const AGAIN_AFTER_MS = 10 * 60_000;
const REMEMBERED_MAX = 10_000;

/**
 * Remembers the last report of each subject, so that a lasting problem is reported every ten minutes instead of in each
 * step.
 */
export class Reports<What extends string = string> {
  readonly #last = new LRUCache<string, What>({ max: REMEMBERED_MAX, ttl: AGAIN_AFTER_MS });

  /** Returns whether to report this of a subject now. If so, remembers it as reported. */
  noteIfDue(subject: string, what: What): boolean {
    if (this.#last.get(subject) === what) return false;
    this.#last.set(subject, what);
    return true;
  }

  /** Forgets a subject whose problem has ended: its next report is due at once. */
  forget(subject: string): void {
    this.#last.delete(subject);
  }
}
