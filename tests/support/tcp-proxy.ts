import { connect, createServer, type Socket } from 'node:net';

/** A way over TCP to a server, which can be cut and mended. */
export interface TcpProxy extends AsyncDisposable {
  port: number;
  /** Ends all connections; new ones are refused until it is mended. */
  cut(): Promise<void>;
  mend(): Promise<void>;
}

/** Opens a way to a server, which may listen at a unix socket: it is reached as a server elsewhere is. */
export async function openTcpProxy(target: { path: string } | { host: string; port: number }): Promise<TcpProxy> {
  const open = new Set<Socket>();

  const server = createServer((near) => {
    const far = connect(target);
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const) {
      open.add(one);
      one.pipe(other);
      // How it ended does not matter, only that the other side ends too.
      one.on('error', () => other.destroy());
      one.on('close', () => {
        open.delete(one);
        other.destroy();
      });
    }
  });

  async function listen(port: number): Promise<number> {
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(port, '127.0.0.1', resolve);
    });
    const address = server.address();
    if (address === null || typeof address === 'string') throw new Error('the proxy listens at no port');
    return address.port;
  }

  async function cut(): Promise<void> {
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    for (const socket of open) socket.destroy();
    await closed;
  }

  const port = await listen(0);
  return {
    port,
    cut,
    async mend() {
      await listen(port);
    },
    [Symbol.asyncDispose]: cut,
  };
}
