import { connect, type Socket } from 'node:net';

/** Connections from one loopback address, which stay open until the service closes them. */
export interface HeldConnections extends Disposable {
  /** The number of open ones. */
  openCount(): number;
  /** The number of those that the service closed. */
  closedCount(): number;
  /** The bytes received on each, in the order of their opening. */
  received: string[];
}

interface HoldOptions {
  base_url: string;
  address: string;
  count: number;
  /** The text sent on each, so that the kernel delivers the connection to the service. */
  text: string;
  /** Whether one that the service closes is opened again at once. */
  reopens?: boolean;
}

/** Starts to open the connections. Some may not be open yet when this returns. */
export function holdConnections({ base_url, address, count, text, reopens = false }: HoldOptions): HeldConnections {
  const { hostname, port } = new URL(base_url);
  const sockets = new Set<Socket>();
  const received: string[] = Array.from({ length: count }, () => '');
  let closed = 0;
  let is_over = false;

  function open(index: number): void {
    const socket = connect({ host: hostname, port: Number(port), localAddress: address });
    sockets.add(socket);
    socket.on('error', () => {});
    socket.on('data', (bytes: Buffer) => {
      received[index] += bytes.toString('latin1');
    });
    socket.on('close', () => {
      sockets.delete(socket);
      closed += 1;
      if (reopens && !is_over) open(index);
    });
    socket.write(text);
  }

  for (let index = 0; index < count; index += 1) open(index);
  return {
    openCount: () => [...sockets].filter(({ readyState }) => readyState === 'open').length,
    closedCount: () => closed,
    received,
    [Symbol.dispose]() {
      is_over = true;
      for (const socket of sockets) socket.destroy();
    },
  };
}
