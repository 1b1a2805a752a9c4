import type { Server } from 'bun';
import { StartError } from '../errors.ts';
import type { Events } from '../events.ts';
import { isErrno } from '../processes.ts';
import { type Answering, handlersOf, listenAddresses, serveAll, serverLimits, stopAll } from './listen.ts';

/** A certificate with its chain, and its private key, in PEM. */
interface KeyPair {
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
  /**
   * Whether the port is opened a second time before it is closed, so that certificates change without a pause. Other
   * programs of this user, such as game servers, could then open it too.
   */
  can_share: boolean;
  certificates: ServedCertificates;
  answering: Pick<Answering, 'fetch' | 'websocket'>;
  events: Events;
}

/** The port for https. */
export interface TlsPort {
  /** Accepts no more connections, and ends the requests in progress within a time limit. */
  stop(): Promise<void>;
}

/**
 * Opens the port for https as soon as there is a certificate. After every change of certificates, new connections get the
 * new ones, and open connections stay as they are; a connection that is opened at that moment may be refused. A client
 * that names a host without a certificate gets the first certificate. Throws StartError if the port cannot be opened.
 */
export function openTlsPort(options: TlsPortOptions): TlsPort {
  const { port, can_share, certificates, events } = options;
  let servers = listen(options);
  /** Closed listeners that still have connections. */
  const replaced = new Set<Server<unknown>>();
  const report = (event: 'https_opened' | 'https_renewed') =>
    events.emit({ event, port, names: [...certificates.current().keys()] });
  if (servers.length > 0) report('https_opened');

  function renew(): void {
    const before = servers;
    const retire = () => {
      for (const server of before) {
        replaced.add(server);
        void server.stop(false).finally(() => replaced.delete(server));
      }
    };
    if (!can_share) retire();
    try {
      servers = listen(options);
      report(before.length === 0 ? 'https_opened' : 'https_renewed');
    } catch (cause) {
      events.emit({ event: 'https_not_renewed', port, cause });
      if (can_share) return;
    }
    if (can_share) retire();
  }

  const unsubscribe = certificates.onChange(renew);
  return {
    async stop() {
      unsubscribe();
      await stopAll([...servers, ...replaced]);
    },
  };
}

/** Listens with the current certificates; at no address if there are none. */
function listen(options: TlsPortOptions): Server<unknown>[] {
  const { host, port, request_timeout_ms, can_share, certificates, answering } = options;
  const tls = [...certificates.current()].map(([serverName, { certificate: cert, key }]) => ({
    serverName,
    cert,
    key,
  }));
  if (tls.length === 0) return [];
  const limits = serverLimits(request_timeout_ms);
  try {
    return serveAll(listenAddresses(host), { port, reusePort: can_share, ...limits, tls, ...handlersOf(answering) });
  } catch (cause) {
    throw new StartError(describeFailure(cause, port, 'MUSTER_HTTPS_PORT'), { cause });
  }
}

/** Says why a port cannot be opened and what to do. */
export function describeFailure(cause: unknown, port: number, setting: string): string {
  if (isErrno(cause, 'EADDRINUSE')) {
    return `Port ${port} is taken by another program: stop that one, or set ${setting} to a free port.`;
  }
  if (isErrno(cause, 'EACCES')) {
    return `This user may not listen at port ${port}: set ${setting} to a port above 1023, or allow the executable to (setcap cap_net_bind_service=+ep muster).`;
  }
  return `The service cannot listen at port ${port} (${cause}): check MUSTER_HOST and ${setting}.`;
}
