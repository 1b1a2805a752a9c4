/** How many places may be empty in any case, so that the gaps of a small registry are not closed all the time. */
const EMPTY_MAX = 64;

interface Place<Item> {
  item: Item;
  index: number;
}

/**
 * Items that come and go, such as the requests in progress, in the order in which they came. A `Map` or `Set` would do,
 * but keeps what was removed in memory until a full garbage collection, which made every collection of a busy service
 * slow (docs/decisions/0053).
 */
export class Registry<Item> {
  readonly #places: (Place<Item> | undefined)[] = [];
  /** No place before this one has an item. */
  #first = 0;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** Adds an item. Returns the function that removes it, and returns whether it was still there. */
  add(item: Item): () => boolean {
    if (this.#places.length > 2 * this.#size + EMPTY_MAX) this.#closeGaps();
    const place = { item, index: this.#places.length };
    this.#places.push(place);
    this.#size += 1;
    return () => this.#remove(place);
  }

  /** Returns the item that came first of those that are there; undefined if there is none. */
  first(): Item | undefined {
    if (this.#size === 0) return undefined;
    while (!this.#places[this.#first]) this.#first += 1;
    return this.#places[this.#first]?.item;
  }

  /** Returns the items that are there now. */
  list(): Item[] {
    const items: Item[] = [];
    for (const place of this.#places) if (place) items.push(place.item);
    return items;
  }

  #remove(place: Place<Item>): boolean {
    if (this.#places[place.index] !== place) return false;
    this.#places[place.index] = undefined;
    this.#size -= 1;
    if (this.#size === 0) this.#closeGaps();
    return true;
  }

  #closeGaps(): void {
    let size = 0;
    for (const place of this.#places) {
      if (!place) continue;
      place.index = size;
      this.#places[size] = place;
      size += 1;
    }
    this.#places.length = size;
    this.#first = 0;
  }
}
