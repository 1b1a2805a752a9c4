import { connect, createServer, type Socket } from 'node:net';

/** A way over TCP to a server, which can be cut and mended. */
export interface TcpProxy extends Disposable {
  port: number;
  /** Ends all connections, and takes no more until it is mended. */
  cut(): void;
  mend(): void;
}

/** Opens a way to a server, which may listen at a unix socket: it is reached as a server elsewhere is. */
export async function openTcpProxy(target: { path: string } | { host: string; port: number }): Promise<TcpProxy> {
  const open = new Set<Socket>();
  let is_cut = false;

  const server = createServer((near) => {
    if (is_cut) return void near.destroy();
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
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the proxy listens at no port');

  function cut(): void {
    is_cut = true;
    for (const socket of open) socket.destroy();
  }
  return {
    port: address.port,
    cut,
    mend() {
      is_cut = false;
    },
    [Symbol.dispose]() {
      cut();
      server.close();
    },
  };
}
