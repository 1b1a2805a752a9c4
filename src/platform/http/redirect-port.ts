import type { Server } from 'bun';
import { StartError } from '../errors.ts';
import { type Answering, handlersOf, listenAddresses, serveAll, serverLimits, stopAll } from './listen.ts';
import { describeFailure, type ServedCertificates } from './tls-port.ts';

const HTTPS_DEFAULT = 443;

interface RedirectPortOptions {
  host: string;
  port: number;
  /** The port for https. */
  https_port: number;
  request_timeout_ms: number;
  certificates: Pick<ServedCertificates, 'current'>;
  /** Answers requests for hosts without a certificate. */
  answering: Pick<Answering, 'fetch' | 'websocket'>;
  /** Answers an authority that checks a host; undefined for all other requests. */
  answerChallenge(request: Request): Promise<Response> | undefined;
}

/**
 * Opens the port for http, which redirects to https: for hosts that have a certificate, since no other host can be served
 * there. Throws StartError if it cannot listen.
 */
export function openRedirectPort(options: RedirectPortOptions): { stop(): Promise<void> } {
  const { host, port, https_port, request_timeout_ms, certificates, answering, answerChallenge } = options;
  const to_port = https_port === HTTPS_DEFAULT ? '' : `:${https_port}`;

  function fetch(request: Request, server: Server<unknown>): Response | Promise<Response> {
    const challenge = answerChallenge(request);
    if (challenge) return challenge;
    const url = URL.parse(request.url);
    if (!url || !isCovered(url.hostname, certificates.current())) return answering.fetch(request, server);
    const location = `https://${url.hostname}${to_port}${url.pathname}${url.search}`;
    return new Response(`Use ${location}\n`, { status: 308, headers: { location } });
  }

  const { websocket } = answering;
  const handlers = handlersOf(websocket ? { fetch, websocket } : { fetch });
  try {
    const servers = serveAll(listenAddresses(host), { port, ...serverLimits(request_timeout_ms), ...handlers });
    return { stop: () => stopAll(servers) };
  } catch (cause) {
    throw new StartError(describeFailure(cause, port, 'MUSTER_HTTP_PORT'), { cause });
  }
}

/** Returns whether a host has a certificate: one of its own, or of all names below its parent. */
function isCovered(hostname: string, served: ReadonlyMap<string, unknown>): boolean {
  const name = hostname.toLowerCase().replace(/\.$/, '');
  return served.has(name) || served.has(name.replace(/^[^.]+/, '*'));
}
