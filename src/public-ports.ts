import type { Config } from './config.ts';
import type { Certificates } from './features/certificates/certificates.ts';
import type { Events } from './platform/events.ts';
import type { Answering } from './platform/http/listen.ts';
import { openRedirectPort } from './platform/http/redirect-port.ts';
import { openTlsPort } from './platform/http/tls-port.ts';

interface PublicPortsOptions {
  certificates: Certificates;
  answering: Pick<Answering, 'fetch' | 'websocket'>;
  events: Events;
}

/** Opens the ports for https, and for http that redirects there, if they are configured. Throws StartError. */
export async function openPublicPorts(
  { host, request_timeout_ms, tls }: Config,
  { certificates, answering, events }: PublicPortsOptions,
): Promise<AsyncDisposable> {
  const { https_port, http_port } = tls;
  await using opened = new AsyncDisposableStack();
  if (https_port !== undefined) {
    const shared = { host, request_timeout_ms, certificates, answering, events };
    // As root, game servers have other users, which cannot open a port of ours.
    const can_share = process.getuid?.() === 0;
    opened.adopt(openTlsPort({ ...shared, port: https_port, can_share }), (port) => port.stop());
    if (http_port !== undefined) {
      const { answerChallenge } = certificates;
      opened.adopt(openRedirectPort({ ...shared, port: http_port, https_port, answerChallenge }), (port) =>
        port.stop(),
      );
    }
  }
  const everything = opened.move();
  return { [Symbol.asyncDispose]: () => everything.disposeAsync() };
}
