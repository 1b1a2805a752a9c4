import type { Server } from 'bun';

/** By which of our listeners a request came, where it is not the first one. */
const listeners = new WeakMap<Request, Server<unknown>>();

/** Notes that a request came by another listener than the first. */
export function noteListener(request: Request, server: Server<unknown>): void {
  listeners.set(request, server);
}

/** The listener that a request came by; it alone knows the connection. */
export function listenerOf<First>(request: Request, first: First): First | Server<unknown> {
  return listeners.get(request) ?? first;
}
