/**
 * Who takes a place, for the limit on each. Where it costs something to find out, a function: it is asked only when it
 * counts.
 */
export type Waiter = string | (() => string);

export function nameOf(waiter: Waiter): string {
  return typeof waiter === 'function' ? waiter() : waiter;
}

/** Places of which each may take some, by his name. */
export class Places {
  readonly #max: number;
  readonly #taken = new Map<string, number>();

  constructor(max: number) {
    this.#max = max;
  }

  /** Whether there was one left for him. */
  take(name: string): boolean {
    const taken = this.#taken.get(name) ?? 0;
    if (taken >= this.#max) return false;
    this.#taken.set(name, taken + 1);
    return true;
  }

  leave(name: string): void {
    const left = (this.#taken.get(name) ?? 1) - 1;
    if (left === 0) this.#taken.delete(name);
    else this.#taken.set(name, left);
  }
}
