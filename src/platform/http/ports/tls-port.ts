import type { Server } from 'bun';
import { StartError } from '../../errors.ts';
import type { Events } from '../../events.ts';
import {
  describeListenFailure,
  holdAndListen,
  listenAddresses,
  listenOnFreedPort,
  type PortHandlers,
  serveAll,
  serverLimits,
  stopAll,
  toServeOptions,
} from './listen.ts';

/** A certificate with its chain, and its private key, in PEM. */
export interface KeyPair {
  certificate: string;
  key: string;
}

/** The certificates to serve. */
export interface ServedCertificates {
  /** The certificate of each host name; `*.example.com` stands for all names directly below. */
  current(): ReadonlyMap<string, KeyPair>;
  /** Calls `listener` after every change until the returned function is called. */
  onChange(listener: () => void): () => void;
}

interface TlsPortOptions {
  host: string;
  port: number;
  request_timeout_ms: number;
  /** The file that names the holder of the port; undefined if game servers run as the service's user. */
  hold_file: string | undefined;
  certificates: ServedCertificates;
  handlers: PortHandlers;
  events: Events;
}

/** How long to wait before a port that could not be opened is tried again, doubled after each failure. */
const RETRY_MS = { first: 1_000, max: 60_000 };

/** The port for https. */
export interface TlsPort {
  /** Accepts no more connections, and ends the requests in progress within a time limit. */
  stop(): Promise<void>;
}

/**
 * Opens the port for https as soon as there is a certificate, and ends a game server that has the port. After every change
 * of certificates, new connections get the new ones, and open connections stay as they are; a connection that is opened at
 * that moment may be refused. If the port cannot be opened with the new ones, tries again until it can. A client that names
 * a host without a certificate gets the first certificate. Throws StartError if the port cannot be opened at first.
 */
export async function openTlsPort(options: TlsPortOptions): Promise<TlsPort> {
  const { port, certificates, handlers, events } = options;
  // A held port is opened a second time before it is closed, so that certificates change without a pause.
  const { can_share, ...first } = await openServers(options);
  let { servers } = first;
  /** Closed listeners that still have connections. */
  const replaced = new Set<Server<unknown>>();
  const report = (event: 'https_opened' | 'https_renewed') =>
    events.emit({ event, port, names: [...certificates.current().keys()] });
  if (servers.length > 0) report('https_opened');

  let retry: Timer | undefined;
  let retry_ms = RETRY_MS.first;

  async function renew(): Promise<void> {
    clearTimeout(retry);
    const before = servers;
    const retire = () => {
      for (const server of before) {
        replaced.add(server);
        void server.stop(false).finally(() => replaced.delete(server));
      }
    };
    if (!can_share) retire();
    try {
      servers = await listenOnFreedPort(options, handlers.endServersOnPort, () => listen(options, can_share));
    } catch (cause) {
      events.emit({ event: 'https_not_renewed', port, cause });
      if (!can_share) servers = [];
      retry = setTimeout(queueRenewal, retry_ms);
      retry_ms = Math.min(RETRY_MS.max, retry_ms * 2);
      return;
    }
    retry_ms = RETRY_MS.first;
    report(before.length === 0 ? 'https_opened' : 'https_renewed');
    if (can_share) retire();
  }

  let renewed = Promise.resolve();
  const queueRenewal = () => {
    renewed = renewed.then(renew);
  };
  const unsubscribe = certificates.onChange(queueRenewal);
  return {
    async stop() {
      unsubscribe();
      await renewed;
      clearTimeout(retry);
      await stopAll([...servers, ...replaced]);
    },
  };
}

/** Holds the port, if it can be held, and listens with the current certificates. */
async function openServers(options: TlsPortOptions): Promise<{ servers: Server<unknown>[]; can_share: boolean }> {
  try {
    return await listenOnFreedPort(options, options.handlers.endServersOnPort, () => {
      const { listening, hold } = holdAndListen(options, (is_held) => listen(options, is_held));
      return { servers: listening, can_share: hold !== undefined };
    });
  } catch (cause) {
    throw new StartError(describeListenFailure(cause, options, 'MUSTER_HTTPS_PORT'), { cause });
  }
}

/** Listens with the current certificates; at no address if there are none. */
function listen(options: TlsPortOptions, reusePort: boolean): Server<unknown>[] {
  const { host, port, request_timeout_ms, certificates, handlers } = options;
  const tls = [...certificates.current()].map(([serverName, { certificate: cert, key }]) => ({
    serverName,
    cert,
    key,
  }));
  if (tls.length === 0) return [];
  const limits = serverLimits(request_timeout_ms);
  return serveAll(listenAddresses(host), { port, reusePort, ...limits, tls, ...toServeOptions(handlers) });
}

/** Returns whether a host has a certificate: one of its own, or of all names below its parent. */
export function isCovered(hostname: string, served: ReadonlyMap<string, unknown>): boolean {
  const name = hostname.toLowerCase().replace(/\.$/, '');
  return served.has(name) || served.has(name.replace(/^[^.]+/, '*'));
}
