/** Remembers which of the service's servers received a request. Only that one knows its connection. */
export class ReceivingServers<Server> {
  #first: Server | undefined;
  readonly #others = new WeakMap<Request, Server>();

  note(request: Request, server: Server): void {
    this.#first ??= server;
    if (server !== this.#first) this.#others.set(request, server);
  }

  /** Returns null for a request that no server received. */
  of(request: Request): Server | null {
    return this.#others.get(request) ?? this.#first ?? null;
  }
}
