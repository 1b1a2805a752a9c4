import { createServer, type Socket } from 'node:net';

/** A listener at a port of this machine. */
export interface Listener extends AsyncDisposable {
  port: number;
  /** The number of connections. */
  readonly connections: number;
  /** The received text of each connection, in the order of their opening. */
  readonly received: string[];
}

/** Listens at an address, by default on a free port. Calls back with each connection. */
export async function listenAt(
  host: string,
  serve: (socket: Socket) => void = () => {},
  wanted_port = 0,
): Promise<Listener> {
  const open = new Set<Socket>();
  const received: string[] = [];
  let connections = 0;
  const server = createServer((socket) => {
    const index = connections;
    connections += 1;
    received[index] = '';
    open.add(socket);
    socket.on('close', () => open.delete(socket));
    // Does not wait for abandoned sockets.
    socket.on('error', () => socket.destroy());
    socket.on('data', (piece) => {
      received[index] += piece.toString('latin1');
    });
    serve(socket);
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(wanted_port, host, resolve);
  });
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('it listens at no port');
  return {
    port: address.port,
    get connections() {
      return connections;
    },
    received,
    async [Symbol.asyncDispose]() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      for (const socket of open) socket.destroy();
      await closed;
    },
  };
}

/** Returns whether a request is complete: its headers, and a body of the announced length. */
export function isWhole(received: string): boolean {
  const [head = '', ...rest] = received.split('\r\n\r\n');
  const length = Number(/^content-length: *(\d+)/im.exec(head)?.[1] ?? 0);
  return rest.length > 0 && rest.join('\r\n\r\n').length >= length;
}

/** Answers each complete request with a raw text. */
export function answerWith(text: string): (socket: Socket) => void {
  return onRequest((socket) => void socket.end(text));
}

/** Calls back with each connection once its request is complete. */
export function onRequest(act: (socket: Socket, received: string) => void): (socket: Socket) => void {
  return (socket) => {
    let received = '';
    socket.on('data', (piece) => {
      const was_whole = isWhole(received);
      received += piece.toString('latin1');
      if (!was_whole && isWhole(received)) act(socket, received);
    });
  };
}

/** Returns the text of an answer with a status. */
export function answerText(
  status: number,
  { headers = {}, body = '' }: { headers?: Record<string, string>; body?: string } = {},
): string {
  const lines = Object.entries({ 'content-length': String(Buffer.byteLength(body)), ...headers });
  return [`HTTP/1.1 ${status} Said`, ...lines.map(([name, value]) => `${name}: ${value}`), '', body].join('\r\n');
}
