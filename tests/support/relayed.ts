import { connect, type TLSSocket } from 'node:tls';
import { findFreePort } from './network/test-ports.ts';
import { writeCertificate } from './network/tls.ts';
import { waitFor } from './wait.ts';

/** A lobby server that answers what it gets, at its ports "game" and "plain" by TCP and "voice" by UDP. */
export const ECHO_SOURCE = `
const { SERVICE_API_ENDPOINT, SERVICE_TOKEN, PORT_game, PORT_plain, PORT_voice } = process.env;
const hostname = '0.0.0.0';
const socket = { data: (socket, bytes) => { if (bytes.toString() === 'exit') process.exit(0); socket.write(bytes); } };
for (const port of [PORT_game, PORT_plain]) if (port) Bun.listen({ hostname, port: Number(port), socket });
if (PORT_voice) await Bun.udpSocket({ hostname, port: Number(PORT_voice), socket: { data: (socket, bytes, port, address) => { try { socket.send(bytes, port, address); } catch {} }, error() {} } });
const headers = { authorization: 'Bearer ' + SERVICE_TOKEN };
if (SERVICE_TOKEN) await fetch(SERVICE_API_ENDPOINT + '/matchmaker/lobbies/ready', { method: 'POST', headers });
console.log('listening');
`;

/** Ports of the protocols that have no host names. */
export const ECHO_PORTS = {
  game: { port: 7_000, protocol: 'tcp_tls' },
  plain: { port: 7_001, protocol: 'tcp' },
  voice: { port: 7_002, protocol: 'udp' },
};

/** Writes a certificate for localhost to new files. Returns it, and the settings of a service that uses it. */
export async function certifyLocalhost() {
  const { certificate, files } = await writeCertificate(['localhost']);
  const ports = { MUSTER_SERVER_HOST: 'localhost', MUSTER_HTTPS_PORT: String(findFreePort()) };
  return { certificate, settings: { ...files, ...ports } };
}

/** A port as a find names it. */
export interface NamedPort {
  hostname: string;
  port: number;
}

/** Opens a TLS connection as a player does, who trusts one certificate. */
export async function openTlsPlayer({ hostname, port }: NamedPort, ca: string): Promise<TLSSocket> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const socket = connect({ host: hostname, port, servername: hostname, ca }, resolve);
  socket.on('error', reject);
  await promise;
  return socket;
}

/** Sends a text by an open connection, and waits for the same text. */
export async function echoBy(socket: Pick<TLSSocket, 'write' | 'on' | 'off'>, text: string): Promise<void> {
  let received = '';
  const listener = (bytes: Buffer) => {
    received += bytes.toString();
  };
  socket.on('data', listener);
  socket.write(text);
  await waitFor(() => received === text, `the answer to ${text}`);
  socket.off('data', listener);
}

/** Sends a text by TCP without TLS, and returns the answer. Rejects if nothing listens. */
export async function echoByTcp({ hostname, port }: NamedPort, text: string): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const socket = await Bun.connect({
    hostname,
    port,
    socket: {
      open: (opened) => void opened.write(text),
      data: (_, bytes) => resolve(bytes.toString()),
      close: () => reject(new Error('closed without an answer')),
    },
  });
  const answer = await promise;
  socket.end();
  return answer;
}

/** A UDP player of a port. */
export async function openUdpPlayer({ hostname, port }: NamedPort) {
  const received: string[] = [];
  let sent_count = 0;
  const socket = await Bun.udpSocket({
    hostname: hostname.includes(':') ? '::' : '0.0.0.0',
    connect: { hostname: hostname === 'localhost' ? '127.0.0.1' : hostname, port },
    socket: { data: (_, bytes) => void received.push(bytes.toString()), error() {} },
  });
  const send = (text: string) => {
    sent_count += 1;
    socket.send(text);
  };
  return {
    received,
    /** How many packets it has sent. */
    get sent_count() {
      return sent_count;
    },
    send,
    /** Sends a text until it is answered, as games do, because packets may be lost. */
    echo: (text: string) =>
      waitFor(() => {
        if (!received.includes(text)) send(text);
        return received.includes(text);
      }, `the answer to ${text}`),
    [Symbol.dispose]: () => socket.close(),
  };
}
