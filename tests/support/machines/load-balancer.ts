import { connect, createServer, type Socket } from 'node:net';
import { createServer as createTlsServer, type TlsOptions } from 'node:tls';

/** A load balancer before several processes, such as a Service of a Kubernetes cluster. */
export interface LoadBalancer extends AsyncDisposable {
  /** The number of connections so far. */
  readonly connections: number;
  /** Ends all connections, as load balancers do when a process does not answer. */
  endConnections(): void;
}

interface LoadBalancerOptions {
  /** The port of the processes, by default that of the load balancer. */
  to_port?: number;
  /** Its certificate, if clients connect by TLS. */
  tls?: TlsOptions;
}

/** Opens a port that forwards each connection to the next process in turn. Skips processes that refuse it. */
export async function openLoadBalancer(
  hostname: string,
  port: number,
  addresses: readonly string[],
  { to_port = port, tls }: LoadBalancerOptions = {},
): Promise<LoadBalancer> {
  const open = new Set<Socket>();
  let connections = 0;

  function forward(near: Socket, tried: number): void {
    const far = connect({ host: addresses[(connections + tried) % addresses.length] ?? '', port: to_port });
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
      else forward(near, tried + 1);
    });
  }

  const endConnections = () => {
    for (const socket of open) socket.destroy();
  };
  const onConnection = (near: Socket) => {
    connections += 1;
    open.add(near);
    near.on('error', () => near.destroy());
    near.on('close', () => open.delete(near));
    forward(near, 0);
  };
  const server = tls ? createTlsServer(tls, onConnection) : createServer(onConnection);
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, hostname, resolve);
  });
  return {
    get connections() {
      return connections;
    },
    endConnections,
    async [Symbol.asyncDispose]() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      endConnections();
      await closed;
    },
  };
}
