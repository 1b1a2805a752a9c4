/** How many slots may be empty in any case, so that the gaps of a small registry are not closed all the time. */
const EMPTY_MAX = 64;

/** What a registry knows of an item, by which the item is removed. */
export interface Slot<Item> {
  readonly item: Item;
  /** Where it is in the registry. Changes when gaps are closed. */
  index: number;
}

/**
 * Items that come and go, such as the requests in progress, in the order in which they came. A `Map` or `Set` would do,
 * but keeps what was removed in memory until a full garbage collection, which made every collection of a busy service
 * slow (docs/decisions/0053).
 */
export class Registry<Item> {
  readonly #slots: (Slot<Item> | undefined)[] = [];
  /** No slot before this one has an item. */
  #first = 0;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** Adds an item. Returns its slot, by which it is removed. */
  add(item: Item): Slot<Item> {
    if (this.#slots.length > 2 * this.#size + EMPTY_MAX) this.#closeGaps();
    const slot = { item, index: this.#slots.length };
    this.#slots.push(slot);
    this.#size += 1;
    return slot;
  }

  /** Removes the item of a slot. Returns whether it was still there. */
  remove(slot: Slot<Item>): boolean {
    if (this.#slots[slot.index] !== slot) return false;
    this.#slots[slot.index] = undefined;
    this.#size -= 1;
    if (this.#size === 0) this.#closeGaps();
    return true;
  }

  /** Returns the slot of the item that came first of those that are there; undefined if there is none. */
  first(): Slot<Item> | undefined {
    if (this.#size === 0) return undefined;
    while (!this.#slots[this.#first]) this.#first += 1;
    return this.#slots[this.#first];
  }

  /** Returns the slots of the items that are there now. */
  slots(): Slot<Item>[] {
    return this.#slots.filter((slot) => slot !== undefined);
  }

  /** Returns the items that are there now. */
  list(): Item[] {
    return this.slots().map(({ item }) => item);
  }

  #closeGaps(): void {
    let size = 0;
    for (const slot of this.#slots) {
      if (!slot) continue;
      slot.index = size;
      this.#slots[size] = slot;
      size += 1;
    }
    this.#slots.length = size;
    this.#first = 0;
  }
}
