import { createServer, type Socket } from 'node:net';

/** A listener at a port of this machine. */
export interface Listener extends AsyncDisposable {
  port: number;
  /** How many connections came. */
  readonly connections: number;
  /** What was said on each, so far, in the order that they came. */
  readonly heard: string[];
}

/** Listens at an address; a port of its own unless one is named. Every connection is handed over when it has come. */
export async function listenAt(
  host: string,
  serve: (socket: Socket) => void = () => {},
  wanted_port = 0,
): Promise<Listener> {
  const open = new Set<Socket>();
  const heard: string[] = [];
  let connections = 0;
  const server = createServer((socket) => {
    const index = connections;
    connections += 1;
    heard[index] = '';
    open.add(socket);
    socket.on('close', () => open.delete(socket));
    // Does not wait for sockets that were given up.
    socket.on('error', () => socket.destroy());
    socket.on('data', (piece) => {
      heard[index] += piece.toString('latin1');
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
    heard,
    async [Symbol.asyncDispose]() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      for (const socket of open) socket.destroy();
      await closed;
    },
  };
}

/** Whether a whole request was heard: its headers, and as much of a body as they say. */
export function isWhole(heard: string): boolean {
  const [head = '', ...rest] = heard.split('\r\n\r\n');
  const length = Number(/^content-length: *(\d+)/im.exec(head)?.[1] ?? 0);
  return rest.length > 0 && rest.join('\r\n\r\n').length >= length;
}

/** Answers each request, once it is whole, with a text as it stands. */
export function answerWith(text: string): (socket: Socket) => void {
  return onRequest((socket) => void socket.end(text));
}

/** Does something with each connection when its request is whole. */
export function onRequest(act: (socket: Socket, heard: string) => void): (socket: Socket) => void {
  return (socket) => {
    let heard = '';
    socket.on('data', (piece) => {
      const was_whole = isWhole(heard);
      heard += piece.toString('latin1');
      if (!was_whole && isWhole(heard)) act(socket, heard);
    });
  };
}

/** An answer of a status, as text. */
export function answerText(
  status: number,
  { headers = {}, body = '' }: { headers?: Record<string, string>; body?: string } = {},
): string {
  const lines = Object.entries({ 'content-length': String(Buffer.byteLength(body)), ...headers });
  return [`HTTP/1.1 ${status} Said`, ...lines.map(([name, value]) => `${name}: ${value}`), '', body].join('\r\n');
}
