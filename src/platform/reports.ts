import { LRUCache } from 'lru-cache';

/** What lasts is reported again after this time. */
const AGAIN_AFTER_MS = 10 * 60_000;
const REMEMBERED_MAX = 10_000;

/** Remembers what was reported last of each subject, so that what lasts is reported every ten minutes and not in each step. */
export class Reports<What extends string = string> {
  readonly #last = new LRUCache<string, What>({ max: REMEMBERED_MAX, ttl: AGAIN_AFTER_MS });

  /** Returns whether to report this of a subject now, and remembers it as reported. */
  begin(subject: string, what: What): boolean {
    if (this.#last.get(subject) === what) return false;
    this.#last.set(subject, what);
    return true;
  }

  /** Ends what lasted: the next report of the subject is due at once. */
  end(subject: string): void {
    this.#last.delete(subject);
  }
}
