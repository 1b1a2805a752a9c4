import type { Socket } from 'bun';

/** The outcome of a request: its status, with the code of a refusal, or why there is no answer. */
export interface Answered {
  outcome: string;
  text?: string;
}

interface Connection {
  /** The local address of the request. */
  address: string;
  socket: Socket<Connection>;
  text: string;
  settle(answered: Answered): void;
}

/** Keeps connections and reuses them, for one request at a time on each. Each request has the next local address. */
export function createConnections({
  port,
  addresses,
  is_fresh = false,
}: {
  port: number;
  addresses: string[];
  /** Whether each request opens a connection of its own. */
  is_fresh?: boolean;
}) {
  const open = new Set<Connection>();
  const idle = new Map(addresses.map((address): [string, Connection[]] => [address, []]));
  let asked = 0;

  async function connect(address: string): Promise<Connection> {
    const connection = { address, text: '', settle() {} } as unknown as Connection;
    const options = {
      hostname: '127.0.0.1',
      port,
      localAddress: address,
      data: connection,
      socket: { data: read, close: (socket: Socket<Connection>) => forget(socket.data) },
    };
    connection.socket = await Bun.connect(options);
    open.add(connection);
    return connection;
  }

  function read({ data: connection }: Socket<Connection>, chunk: Buffer): void {
    connection.text += chunk.toString('latin1');
    if (!isWhole(connection.text)) return;
    const { text } = connection;
    connection.text = '';
    connection.settle({ outcome: outcomeOf(text), text });
    if (is_fresh || /^connection: *close/im.test(text)) connection.socket.end();
    else idle.get(connection.address)?.push(connection);
  }

  function forget(connection: Connection): void {
    open.delete(connection);
    const kept = idle.get(connection.address) ?? [];
    if (kept.includes(connection)) kept.splice(kept.indexOf(connection), 1);
    connection.settle({ outcome: 'cut' });
  }

  return {
    async ask(request: string): Promise<Answered> {
      const address = addresses[asked % addresses.length] ?? '127.0.0.1';
      asked += 1;
      const connection = idle.get(address)?.pop() ?? (await connect(address).catch(() => undefined));
      if (!connection) return { outcome: 'no connection' };
      return await new Promise((resolve) => {
        connection.settle = resolve;
        connection.socket.write(request);
      });
    },
    close(): void {
      for (const { socket } of [...open]) socket.terminate();
    },
  };
}

/** Sends one request from a loopback address. */
export async function requestFrom(address: string, port: number, request: string): Promise<Answered & { ms: number }> {
  const connections = createConnections({ port, addresses: [address], is_fresh: true });
  const started = performance.now();
  const answered = await connections.ask(request);
  connections.close();
  return { ...answered, ms: performance.now() - started };
}

/** Returns the text of a request, with a JSON body or without one. */
export function requestOf(method: string, path: string, headers: Record<string, string>, body?: unknown): string {
  const content = body === undefined ? '' : JSON.stringify(body);
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  const length = body === undefined ? '' : `content-type: application/json\r\ncontent-length: ${content.length}\r\n`;
  return `${method} ${path} HTTP/1.1\r\n${lines.join('')}${length}\r\n${content}`;
}

/** A connection of an attacker, which may leave what it receives unread. */
export interface AttackerConnection {
  /** The status of its answer; undefined without one. */
  status: string | undefined;
  is_closed: boolean;
  write(text: string): void;
}

interface HoldOptions {
  port: number;
  count: number;
  address: string;
  request: string;
  /** Whether each keeps reading after the first bytes of its answer. */
  reads: boolean;
}

/** Opens connections that stay open, each with a request. Disposing of them closes them. */
export async function openAttackers({ port, count, address, request, reads }: HoldOptions) {
  const sockets: Socket<AttackerConnection>[] = [];
  const all: AttackerConnection[] = [];
  const note = (socket: Socket<AttackerConnection>, chunk: Buffer) => {
    socket.data.status ??= chunk.toString('latin1', 9, 12);
    if (!reads) socket.pause();
  };
  for (let number = 0; number < count; number += 1) {
    const held: AttackerConnection = { status: undefined, is_closed: false, write() {} };
    const gone = ({ data }: Socket<AttackerConnection>) => {
      data.is_closed = true;
    };
    all.push(held);
    const options = {
      hostname: '127.0.0.1',
      port,
      localAddress: address,
      data: held,
      socket: { data: note, close: gone, error: gone, end: gone },
    };
    const socket = await Bun.connect(options).catch(() => undefined);
    if (!socket) {
      held.is_closed = true;
      continue;
    }
    held.write = (text) => void socket.write(text);
    socket.write(request);
    sockets.push(socket);
  }
  return {
    all,
    closedCount: () => all.filter(({ is_closed }) => is_closed).length,
    [Symbol.dispose]() {
      for (const socket of sockets) socket.terminate();
    },
  };
}

function isWhole(text: string): boolean {
  const head = text.indexOf('\r\n\r\n');
  if (head < 0) return false;
  const [, length] = /^content-length: *(\d+)/im.exec(text.slice(0, head + 2)) ?? [];
  if (length !== undefined) return text.length >= head + 4 + Number(length);
  return !/^transfer-encoding: *chunked/im.test(text.slice(0, head + 2)) || text.endsWith('\r\n0\r\n\r\n');
}

function outcomeOf(text: string): string {
  const status = text.slice(9, 12);
  const [, code] = /"code":"(\w+)"/.exec(text) ?? [];
  return status === '200' || code === undefined ? status : `${status} ${code}`;
}
