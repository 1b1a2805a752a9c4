import { connect, createServer, type Socket } from 'node:net';

/** A way to several processes, as a Service of a cluster is. */
export interface Front extends AsyncDisposable {
  /** The number of connections so far. */
  readonly connections: number;
}

/** Opens a port that leads each connection to the next process in turn. One that refuses it is left out. */
export async function openFront(hostname: string, port: number, addresses: readonly string[]): Promise<Front> {
  const open = new Set<Socket>();
  let connections = 0;

  function lead(near: Socket, tried: number): void {
    const far = connect({ host: addresses[(connections + tried) % addresses.length] ?? '', port });
    far.once('connect', () => {
      open.add(far);
      near.pipe(far).pipe(near);
      near.on('close', () => far.destroy());
      far.on('close', () => {
        open.delete(far);
        near.destroy();
      });
    });
    far.on('error', () => {
      if (!far.pending || tried + 1 === addresses.length) near.destroy();
      else lead(near, tried + 1);
    });
  }

  const server = createServer((near) => {
    connections += 1;
    open.add(near);
    near.on('error', () => near.destroy());
    near.on('close', () => open.delete(near));
    lead(near, 0);
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, hostname, resolve);
  });
  return {
    get connections() {
      return connections;
    },
    async [Symbol.asyncDispose]() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      for (const socket of open) socket.destroy();
      await closed;
    },
  };
}
