import { connect, createServer, type Socket } from 'node:net';

type Target = { path: string } | { host: string; port: number };

/** A TCP proxy to a server, which a test can cut and heal. */
export interface TcpProxy extends AsyncDisposable {
  port: number;
  /** The number of connections so far. */
  readonly connections: number;
  /** Ends all connections, and refuses new ones until `heal`. */
  cut(): Promise<void>;
  heal(): Promise<void>;
  /** Directs new connections to another server; open ones stay. */
  redirectNewTo(target: Target): void;
  /** Ends all connections, and directs new ones to another server. */
  redirectTo(target: Target): Promise<void>;
  /** Freezes the open connections without ending them, as when a machine has lost its power. */
  stall(): void;
  /** Refuses new connections until `heal`; open ones stay. */
  refuse(): void;
  /** Leaves connections to it open when the server closes its side, as some load balancers do. */
  hideEnds(): void;
  /** Freezes each new connection once its client has sent this text, which the server still gets. */
  stallAfter(text: string): void;
  /** Freezes new connections until the returned function is called. */
  hold(): () => void;
  /** Answers WebSocket upgrades with a status, like a proxy that does not know them. Undefined to stop. */
  refuseWebSockets(status: number | undefined): void;
}

/** Opens a proxy to a server, which may listen on a unix socket. The proxy listens at an address of this machine. */
export async function openTcpProxy(first_target: Target, hostname = '127.0.0.1'): Promise<TcpProxy> {
  const open = new Set<Socket>();
  let target = first_target;
  let refused_status: number | undefined;
  let connections = 0;
  let held: Promise<void> | undefined;
  let are_ends_hidden = false;
  let stalled_after: string | undefined;

  const server = createServer((near) => {
    connections += 1;
    const far = connect(target);
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const) {
      open.add(one);
      // Ends the other side too, however this one ended.
      one.on('error', () => other.destroy());
      one.on('close', () => {
        open.delete(one);
        if (one === near || !are_ends_hidden) other.destroy();
      });
    }
    far.pipe(near, { end: false });
    const text = stalled_after;
    if (text !== undefined) {
      near.on('data', (sent: Buffer) => {
        if (!sent.includes(text)) return;
        far.unpipe(near);
        far.pause();
      });
    }
    far.on('end', () => {
      if (!are_ends_hidden) near.end();
    });
    if (held) {
      near.pause();
      void held.then(() => near.pipe(far));
      return;
    }
    if (refused_status === undefined) {
      near.pipe(far);
      return;
    }
    near.once('data', (first: Buffer) => {
      if (/^upgrade: *websocket/im.test(first.toString('latin1'))) {
        near.end(`HTTP/1.1 ${refused_status} No\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
        return;
      }
      far.write(first);
      near.pipe(far);
    });
  });

  async function listen(port: number): Promise<number> {
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(port, hostname, resolve);
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
  const heal = async () => {
    await listen(port);
  };
  const redirectNewTo = (next: Target) => {
    target = next;
  };
  return {
    port,
    get connections() {
      return connections;
    },
    cut,
    heal,
    redirectNewTo,
    async redirectTo(next) {
      redirectNewTo(next);
      await cut();
      await heal();
    },
    hideEnds() {
      are_ends_hidden = true;
    },
    stall() {
      for (const socket of open) {
        socket.unpipe();
        socket.pause();
      }
    },
    refuse() {
      server.close();
    },
    stallAfter(text) {
      stalled_after = text;
    },
    hold() {
      const { promise, resolve } = Promise.withResolvers<void>();
      held = promise;
      return () => {
        held = undefined;
        resolve();
      };
    },
    refuseWebSockets(status) {
      refused_status = status;
    },
    [Symbol.asyncDispose]: cut,
  };
}
