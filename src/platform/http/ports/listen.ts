import { lookup } from 'node:dns/promises';
import { networkInterfaces } from 'node:os';
import type { Serve, Server, WebSocketHandler } from 'bun';
import { assert, StartError } from '../../errors.ts';
import { parseAddress, toUrlHost } from '../../networks.ts';
import type { SocketHandler } from '../../socket/socket-handlers.ts';
import { hasErrorCode } from '../../system/system-errors.ts';
import { orAborted } from '../../timeouts.ts';
import { holdPort, type PortHold } from './port-hold.ts';

/** Attempts to listen, each after the game servers that have the port were ended. */
const ATTEMPTS_MAX = 10;
const ATTEMPT_PAUSE_MS = 50;
/** Time to find the address of a name. A name server that does not answer is tried several times. */
const LOOKUP_MAX_MS = 30_000;
/** How long requests in progress may take when the service stops. */
const DRAIN_MS = 10_000;
/**
 * The shortest idle timeout of a connection. Longer than that of proxies (nginx: 60 s), because a request that a proxy sends
 * while its connection is being closed would be lost.
 */
const IDLE_TIMEOUT_S = 75;
/** Bun's maximum. */
const IDLE_TIMEOUT_MAX_S = 255;
/** Time for the answer to a request that was over its deadline. */
const ANSWER_WITHIN_S = 5;
/** For uploads, which are streamed to disk and have limits of their own. JSON bodies have a much smaller one. */
const REQUEST_BYTES_MAX = 128 * 1024 ** 3;

export interface PortOptions {
  host: string;
  port: number;
  /** How long a request may wait for its answer. */
  request_timeout_ms: number;
  /**
   * The file that names the holder of the port; undefined if game servers run as the service's user, which makes
   * holding useless.
   */
  hold_file: string | undefined;
}

/** What answers requests at a port of the service, and first ends game servers that have the port. */
export interface PortHandlers {
  fetch(request: Request, server: Server<unknown>): Response | Promise<Response>;
  /** Undefined while WebSockets are not accepted. */
  websocket?: WebSocketHandler<SocketHandler>;
  /** Answers a request whose answer Bun cannot send. */
  answerUnsent(cause: unknown): Response;
  /** Ends the game servers that have the port. Returns how many. */
  endServersOnPort(port: number): Promise<number>;
}

/** The service's port. */
export interface Port {
  /**
   * Sets what answers requests from now on. The first call opens the port, and ends a game server that took it while the
   * service was stopped; later calls keep the port and its connections open. Throws {@link StartError} if it cannot listen.
   */
  setHandlers(handlers: PortHandlers): Promise<void>;
  /** Accepts no more connections. Closes idle ones at once, and the others when their request is done or out of time. */
  stop(): Promise<void>;
  /** Lets other programs have the port while the service is stopped. */
  release(): void;
}

/** Creates the port, which does not listen yet. */
export function createPort(options: PortOptions): Port {
  let opened: { servers: Server<unknown>[]; hold: PortHold | undefined } | undefined;
  return {
    async setHandlers(handlers) {
      if (opened) for (const server of opened.servers) server.reload(toServeOptions(handlers));
      else opened = await openPort(options, handlers);
    },
    stop: () => stopAll(opened?.servers ?? []),
    release: () => opened?.hold?.release(),
  };
}

/** Opens the port at each of its addresses. */
async function openPort(options: PortOptions, handlers: PortHandlers) {
  try {
    return await listenOnFreedPort(options, handlers.endServersOnPort, () => openAll(options, handlers));
  } catch (cause) {
    throw new StartError(describeListenFailure(cause, options, 'MUSTER_PORT'), { cause });
  }
}

/** Says why a port cannot be opened and what to do. */
export function describeListenFailure(
  cause: unknown,
  { host, port }: Pick<PortOptions, 'host' | 'port'>,
  setting: string,
): string {
  if (hasErrorCode(cause, 'EADDRINUSE')) {
    return `Port ${port} is taken by another program: stop that one, or set ${setting} to a free port.`;
  }
  if (hasErrorCode(cause, 'EACCES')) {
    return `This user may not listen at port ${port}: set ${setting} to a port above 1023, or allow the executable to (setcap cap_net_bind_service=+ep muster).`;
  }
  return `The service cannot listen at ${toUrlHost(host)}:${port} (${cause}): check MUSTER_HOST and ${setting}.`;
}

/**
 * Calls `listen`, and while the port is taken, ends the game servers that have it and tries again. Throws the error of
 * the last attempt.
 */
export async function listenOnFreedPort<Result>(
  { port }: { port: number },
  endServersOnPort: PortHandlers['endServersOnPort'],
  listen: () => Result,
): Promise<Result> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return listen();
    } catch (error) {
      const is_taken = hasErrorCode(error, 'EADDRINUSE') && attempt < ATTEMPTS_MAX;
      if (!is_taken || (await endServersOnPort(port)) === 0) throw error;
      await Bun.sleep(ATTEMPT_PAUSE_MS);
    }
  }
}

/**
 * Returns the address of a host to listen on. A name has the first of its addresses that belongs to this machine; the
 * name `localhost` stays, because it means two addresses. Throws StartError for a name whose address is not found in time,
 * and the reason of the signal if that is aborted meanwhile.
 */
export async function resolveHost(host: string, signal: AbortSignal | undefined): Promise<string> {
  if (host === 'localhost' || parseAddress(host)) return host;
  const late = AbortSignal.timeout(LOOKUP_MAX_MS);
  try {
    const all = await orAborted(lookup(host, { all: true }), signal ? AbortSignal.any([signal, late]) : late);
    const found = all.map(({ address }) => address);
    const own = Object.values(networkInterfaces()).flatMap((all) => all ?? []);
    const address = found.find((one) => own.some((mine) => mine.address === one)) ?? found[0];
    assert(address, 'a name that is found has an address');
    return address;
  } catch (cause) {
    signal?.throwIfAborted();
    const sentence = `MUSTER_HOST is "${host}", a name without an address: set it to an address of this machine.`;
    throw new StartError(sentence, { cause });
  }
}

/** Returns the addresses of a host. One loopback address includes the other, which no other program may have. */
export function listenAddresses(host: string): string[] {
  if (host === 'localhost') return ['127.0.0.1', '::1'];
  if (host === '127.0.0.1' || host === '0.0.0.0') return [host, '::1'];
  if (host === '::1') return [host, '127.0.0.1'];
  return [host];
}

/** Returns the limits of Bun's server for a request timeout. */
export function serverLimits(request_timeout_ms: number) {
  // A connection is silent while its request waits for the answer.
  const waits_s = Math.ceil(request_timeout_ms / 1_000) + ANSWER_WITHIN_S;
  const idleTimeout = Math.min(IDLE_TIMEOUT_MAX_S, Math.max(IDLE_TIMEOUT_S, waits_s));
  return { idleTimeout, maxRequestBodySize: REQUEST_BYTES_MAX };
}

function openAll(port_options: PortOptions, handlers: PortHandlers) {
  const { host, port, request_timeout_ms } = port_options;
  const options = { port, ...serverLimits(request_timeout_ms), ...toServeOptions(handlers) };
  const { listening, hold } = holdAndListen(port_options, (reusePort) =>
    serveAll(listenAddresses(host), { ...options, reusePort }),
  );
  return { servers: listening, hold };
}

/**
 * Holds a port, if it can be held, and listens there by `listen`. A held port must be shared with its holder. Throws the error
 * of `listen`, or EADDRINUSE if another program has the port.
 */
export function holdAndListen<Result>(
  { host, port, hold_file }: Pick<PortOptions, 'host' | 'port' | 'hold_file'>,
  listen: (is_held: boolean) => Result,
): { listening: Result; hold: PortHold | undefined } {
  const addresses = listenAddresses(host);
  let hold: PortHold | undefined;
  if (hold_file !== undefined) {
    hold = holdPort({ addresses, port, file: hold_file });
    if (!hold) throw Object.assign(new Error('the port is taken'), { code: 'EADDRINUSE' });
  }
  try {
    return { listening: listen(hold !== undefined), hold };
  } catch (error) {
    hold?.release();
    throw error;
  }
}

/** Listens at the addresses that this machine has; it must have the first. Throws the error of the first that fails. */
export function serveAll(addresses: readonly string[], options: object): Server<unknown>[] {
  const servers: Server<unknown>[] = [];
  try {
    for (const [index, hostname] of addresses.entries()) {
      const serve = { ...options, hostname } as Serve.Options<unknown>;
      const server = index === 0 ? Bun.serve(serve) : serveBeside(serve);
      if (server) servers.push(server);
    }
    return servers;
  } catch (error) {
    for (const server of servers) void server.stop(true);
    throw error;
  }
}

/** Accepts no more connections, and ends the requests in progress within a time limit. */
export async function stopAll(servers: readonly Server<unknown>[]): Promise<void> {
  await Promise.race([Promise.all(servers.map((server) => server.stop(false))), Bun.sleep(DRAIN_MS)]);
  await Promise.all(servers.map((server) => server.stop(true)));
}

export function toServeOptions({
  fetch,
  websocket,
  answerUnsent,
}: Omit<PortHandlers, 'endServersOnPort'>): Serve.Options<unknown> {
  return { fetch, error: answerUnsent, development: false, ...(websocket && { websocket }) } as Serve.Options<unknown>;
}

/** Listens at one more address; undefined if the machine does not have it (no IPv6). */
function serveBeside(serve: Serve.Options<unknown>): Server<unknown> | undefined {
  try {
    return Bun.serve(serve);
  } catch (error) {
    if (hasErrorCode(error, 'EADDRNOTAVAIL') || hasErrorCode(error, 'EAFNOSUPPORT')) return undefined;
    throw error;
  }
}
