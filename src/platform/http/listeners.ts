import type { Server } from 'bun';
import type { App } from './app.ts';

/** By which of our listeners a request came, where it is not the first one. */
const listeners = new WeakMap<Request, Server<unknown>>();

/** Makes the function that has an app answer the requests of all our listeners. */
export function answerBy(app: App): (request: Request, server: Server<unknown>) => Response | Promise<Response> {
  app.compile();
  return (request, server) => {
    // Elysia has a place for one of them.
    app.server ??= server;
    if (server !== app.server) listeners.set(request, server);
    return app.fetch(request);
  };
}

/** The listener that a request came by; it alone knows the connection. */
export function listenerOf<First>(request: Request, first: First): First | Server<unknown> {
  return listeners.get(request) ?? first;
}
