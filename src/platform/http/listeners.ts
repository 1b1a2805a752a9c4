/** Remembers by which of the service's listeners a request came. Only that one knows its connection. */
export class Listeners<Listener> {
  #first: Listener | undefined;
  readonly #others = new WeakMap<Request, Listener>();

  note(request: Request, listener: Listener): void {
    this.#first ??= listener;
    if (listener !== this.#first) this.#others.set(request, listener);
  }

  /** Returns null for a request that came by none. */
  of(request: Request): Listener | null {
    return this.#others.get(request) ?? this.#first ?? null;
  }
}
