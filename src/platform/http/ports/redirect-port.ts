import type { Server } from 'bun';
import { StartError } from '../../errors.ts';
import { closeAfterBody } from '../body.ts';
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
import { isCovered, type ServedCertificates } from './tls-port.ts';

const HTTPS_DEFAULT = 443;

interface RedirectPortOptions {
  host: string;
  port: number;
  /** The file that names the holder of the port; undefined if game servers run as the service's user. */
  hold_file: string | undefined;
  /** The port for https. */
  https_port: number;
  /** Hosts below this domain are answered here: they are game servers, and clients of WebSockets follow no redirect. */
  servers_domain: string;
  request_timeout_ms: number;
  certificates: Pick<ServedCertificates, 'current'>;
  /** Answers requests for hosts without a certificate. */
  handlers: PortHandlers;
  /** Answers an authority that checks a host; undefined for all other requests. */
  answerChallenge(request: Request): Promise<Response> | undefined;
}

/**
 * Opens the port for http, which redirects to https: for hosts that have a certificate, since no other host can be served
 * there. Ends a game server that has the port. Throws StartError if it cannot listen.
 */
export async function openRedirectPort(options: RedirectPortOptions): Promise<{ stop(): Promise<void> }> {
  const { host, port, https_port, servers_domain, request_timeout_ms, certificates, handlers, answerChallenge } =
    options;
  const to_port = https_port === HTTPS_DEFAULT ? '' : `:${https_port}`;

  function fetch(request: Request, server: Server<unknown>): Response | Promise<Response> {
    const challenge = answerChallenge(request);
    if (challenge) return challenge.then((answer) => closeAfterBody(request, answer));
    const url = URL.parse(request.url);
    // The host may be absolute: its last dot means nothing else.
    const is_answered_here = url?.hostname.replace(/\.$/, '').endsWith(`.${servers_domain}`) ?? true;
    if (!url || is_answered_here || !isCovered(url.hostname, certificates.current())) {
      return handlers.fetch(request, server);
    }
    const location = `https://${url.hostname}${to_port}${url.pathname}${url.search}`;
    return closeAfterBody(request, new Response(`Use ${location}\n`, { status: 308, headers: { location } }));
  }

  const redirecting = toServeOptions({ ...handlers, fetch });
  try {
    const listen = (reusePort: boolean) =>
      serveAll(listenAddresses(host), { port, reusePort, ...serverLimits(request_timeout_ms), ...redirecting });
    const opened = await listenOnFreedPort(options, handlers.endServersOnPort, () => holdAndListen(options, listen));
    return { stop: () => stopAll(opened.listening) };
  } catch (cause) {
    throw new StartError(describeListenFailure(cause, options, 'MUSTER_HTTP_PORT'), { cause });
  }
}
