/** The key by which a caller is counted, or a function that returns it if that takes time. */
export type CallerKey = string | (() => string);

export function readCallerKey(key: CallerKey): string {
  return typeof key === 'function' ? key() : key;
}

/** Limits the sockets, polls or transfers of each caller. */
export class CallerSlots {
  readonly #max: number;
  readonly #taken = new Map<string, number>();

  constructor(max: number) {
    this.#max = max;
  }

  /** Takes a slot. Returns false if the caller has none left. */
  take(key: string): boolean {
    const taken = this.#taken.get(key) ?? 0;
    if (taken >= this.#max) return false;
    this.#taken.set(key, taken + 1);
    return true;
  }

  free(key: string): void {
    const left = (this.#taken.get(key) ?? 1) - 1;
    if (left === 0) this.#taken.delete(key);
    else this.#taken.set(key, left);
  }
}
