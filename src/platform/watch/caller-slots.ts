/** The key under which a caller is counted; a function where finding it out costs something. */
export type CallerKey = string | (() => string);

export function readCallerKey(key: CallerKey): string {
  return typeof key === 'function' ? key() : key;
}

/** Slots for sockets, polls or transfers, of which each caller may take so many. */
export class CallerSlots {
  readonly #max: number;
  readonly #taken = new Map<string, number>();

  constructor(max: number) {
    this.#max = max;
  }

  /** Takes a slot. Returns false when the caller has none left. */
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
