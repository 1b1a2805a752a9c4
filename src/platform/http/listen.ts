import type { Serve, Server } from 'bun';
import { StartError } from '../errors.ts';
import { parseAddress } from '../networks.ts';
import { isErrno } from '../processes.ts';
import type { Sockets } from '../socket/sockets.ts';
import type { App } from './app.ts';
import { noteListener } from './listeners.ts';
import { holdPort, type PortHold } from './port-hold.ts';

/** A game server that takes the port again and again is ended each time, but not for ever. */
const ATTEMPTS_MAX = 10;
const ATTEMPT_PAUSE_MS = 50;
/** How long requests that are under way may take when the service stops. */
const DRAIN_MS = 10_000;

interface ListenOptions {
  host: string;
  port: number;
  websocket: Sockets['handlers'];
  /** Where a held port is noted; undefined where game servers run as our own user, who can take whatever is ours. */
  hold_file: string | undefined;
  /** Ends those of our game servers that have the port. Returns how many. */
  evict(port: number): Promise<number>;
}

/** The service's port, taking requests. */
export interface Listening {
  /** Takes no more connections. Idle ones are closed at once, those at work when they are done or out of time. */
  stop(): Promise<void>;
  /** Lets other programs have the port while the service is away. */
  releasePort(): void;
}

/**
 * Takes requests and WebSockets from now on. A game server that took the port while the service was away is ended. Throws
 * {@link StartError} when it cannot listen.
 */
export async function listen(app: App, options: ListenOptions): Promise<Listening> {
  const { host, port, evict } = options;
  for (let attempt = 1; ; attempt += 1) {
    try {
      return listenAtAll(app, options);
    } catch (cause) {
      const is_taken = isErrno(cause, 'EADDRINUSE');
      if (is_taken && attempt < ATTEMPTS_MAX && (await evict(port)) > 0) {
        await Bun.sleep(ATTEMPT_PAUSE_MS);
        continue;
      }
      const what = is_taken
        ? `Port ${port} is taken by another program: stop that one, or set MUSTER_PORT to a free port.`
        : `The service cannot listen at ${host}:${port} (${cause}): check MUSTER_HOST and MUSTER_PORT.`;
      throw new StartError(what, { cause });
    }
  }
}

/** The addresses that belong to a host: who listens at one loopback address must not leave the other to anyone else. */
export function listenAddresses(host: string): string[] {
  if (host === 'localhost') return ['127.0.0.1', '::1'];
  if (host === '127.0.0.1' || host === '0.0.0.0') return [host, '::1'];
  if (host === '::1') return [host, '127.0.0.1'];
  return [host];
}

function listenAtAll(app: App, { host, port, websocket, hold_file }: ListenOptions): Listening {
  const [first = host, ...others] = listenAddresses(host);
  let hold: PortHold | undefined;
  // A name has no address that can be held.
  if (hold_file !== undefined && parseAddress(first)) {
    hold = holdPort({ addresses: [first, ...others], port, file: hold_file });
    if (!hold) throw Object.assign(new Error('the port is taken'), { code: 'EADDRINUSE' });
  }
  const reusePort = hold !== undefined;
  const servers: Pick<Server<unknown>, 'stop'>[] = [];
  try {
    app.listen({ hostname: first, port, websocket, reusePort });
    if (app.server) servers.push(app.server);
    for (const hostname of others) {
      const server = listenBeside(app, { hostname, port, websocket, reusePort });
      if (server) servers.push(server);
    }
  } catch (error) {
    for (const server of servers) void server.stop(true);
    hold?.release();
    throw error;
  }
  return {
    async stop() {
      await Promise.race([Promise.all(servers.map((server) => server.stop(false))), Bun.sleep(DRAIN_MS)]);
      await Promise.all(servers.map((server) => server.stop(true)));
    },
    releasePort: () => hold?.release(),
  };
}

/** One more address of the same service; undefined where the machine has no such address (no IPv6). */
function listenBeside(
  app: App,
  place: { hostname: string; port: number; websocket: Sockets['handlers']; reusePort: boolean },
): Server<unknown> | undefined {
  try {
    return Bun.serve({
      ...app.config.serve,
      ...place,
      fetch(request: Request, server: Server<unknown>) {
        noteListener(request, server);
        return app.fetch(request);
      },
    } as Serve.Options<unknown>);
  } catch (error) {
    if (isErrno(error, 'EADDRNOTAVAIL') || isErrno(error, 'EAFNOSUPPORT')) return undefined;
    throw error;
  }
}
