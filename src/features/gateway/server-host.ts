export const LOOPBACK = '127.0.0.1';

/** A server with its machine, and the host of that machine. */
interface HostedServer {
  node_id: string | null;
  host: string | null | undefined;
}

/**
 * Returns the host at which the machine `node_id` reaches a server: the loopback address for its own servers. Undefined
 * while the host of another machine is not known.
 */
export function hostOf(server: HostedServer, node_id: string): string | undefined {
  return server.node_id === node_id ? LOOPBACK : (server.host ?? undefined);
}
