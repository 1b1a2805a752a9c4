import type { Socket, SocketHandler } from 'bun';
import type { KeyPair } from '../../../platform/http/ports/tls-port.ts';
import type { ServerSlots } from '../server-slots.ts';
import type { ServerTraffic } from '../traffic.ts';
import { Connection, type Endpoint, SILENCE } from './connection.ts';
import { encodeProxyHeader, type ProxyProtocol } from './proxy-header.ts';
import { startCheckingSilence } from './silence.ts';

export interface TcpRelayOptions {
  /** Where clients connect. */
  listen: Endpoint;
  target: Endpoint;
  slots: ServerSlots;
  traffic: ServerTraffic;
  /** Returns the certificate for new connections; undefined while there is none. A relay without this function has no TLS. */
  readCertificate?: (() => KeyPair | undefined) | undefined;
  /** The form in which the server gets the addresses of clients. */
  proxy_protocol?: ProxyProtocol | undefined;
  silence?: typeof SILENCE;
}

/** A public port that leads to a port of a server. */
export interface Relay {
  /** Returns how many connections or clients are open. */
  count(): number;
  /** Accepts nothing more, and closes what is open. */
  close(): void;
}

type ClientSocket = Socket<Connection | undefined>;

/**
 * Opens a TCP port and relays its connections to a server. With TLS, new connections use the renewed certificate, and open
 * ones go on. Throws an error with the code EADDRINUSE if the port is taken.
 */
export function openTcpRelay(options: TcpRelayOptions): Relay {
  const { listen, target, slots, traffic: of_server, readCertificate, proxy_protocol, silence = SILENCE } = options;
  const connections = new Set<Connection>();

  function accept(client: ClientSocket): void {
    const key_pair = readCertificate?.();
    // Undefined, although the type denies it, if the client has reset the connection before it was accepted.
    const address: string | undefined = client.remoteAddress;
    if (address === undefined || (readCertificate && !key_pair)) return void client.terminate();
    // Before a slot is taken, because it throws if the client resets the connection at this moment.
    const header = proxy_protocol && encodeProxyHeader(proxy_protocol, client);
    const free = slots.take(address);
    if (!free) return void client.terminate();
    const traffic = of_server.ofClient(address);
    const noteClosed = traffic.countOpened('connections');
    const onEnd = () => {
      connections.delete(connection);
      noteClosed();
      free();
    };
    const connection = new Connection(client, { target, header, traffic, onEnd });
    connections.add(connection);
    if (key_pair) {
      connection.startTls(key_pair);
    } else {
      client.data = connection;
      void connection.connect();
    }
  }

  // With TLS, these handlers see encrypted bytes and have no `data`: the upgraded socket has handlers of its own.
  const socket: SocketHandler<Connection | undefined> = {
    open: accept,
    data: ({ data }, bytes) => data?.receive(bytes),
    drain: ({ data }) => data?.drainClient(),
    end: ({ data }) => data?.endClient(),
    close: ({ data }) => data?.closeClient(),
    error: ({ data }) => data?.cut(),
  };
  const listener = Bun.listen({ ...listen, exclusive: true, allowHalfOpen: true, data: undefined, socket });
  const checking = startCheckingSilence(Object.values(silence), (now) => {
    for (const connection of [...connections]) connection.closeIfSilent(now, silence);
  });

  return {
    count: () => connections.size,
    close() {
      clearInterval(checking);
      listener.stop();
      for (const connection of [...connections]) connection.cut();
    },
  };
}
