import { findOpenFile } from '../../../../platform/system/processes.ts';
import { type Listener, listListeners } from '../../../../platform/system/tcp-ports.ts';
import type { ServerPort } from '../../tables.ts';
import type { ProcessServer, ReadTrees } from '../linux/process-trees.ts';

interface PortRange {
  min: number;
  max: number;
}

/** Returns the numbers of a port on which its server may listen by TCP; undefined if there are none. */
export function tcpNumbersOf({ protocol, internal_port, port_range }: ServerPort): PortRange | undefined {
  // Ranges may overlap those of other servers. A single number is the server's own for both protocols.
  if (port_range) return protocol === 'udp' ? undefined : port_range;
  return internal_port === undefined ? undefined : { min: internal_port, max: internal_port };
}

/** A server with its ports. */
export interface ListeningServer extends ProcessServer {
  ports: Record<string, ServerPort>;
}

/**
 * Finds the servers that listen on a TCP port that is not theirs. Landlock checks bind(2), and a socket that is not bound
 * gets a port of the kernel's by listen(2) alone, which no filter can tell. Returns one such port of each server.
 */
export async function findStrayPorts(
  servers: readonly ListeningServer[],
  readTrees: ReadTrees,
): Promise<Map<string, number>> {
  const of_users = Map.groupBy(await listListeners(), ({ user_id }) => user_id);
  const found = new Map<string, number>();
  for (const server of servers) {
    if (server.user_id === undefined) continue;
    const stray = of_users.get(server.user_id)?.find((listener) => isStray(server, listener));
    if (stray) found.set(server.server_id, stray.port);
  }
  const sharing = servers.filter(({ user_id }) => user_id === undefined);
  const of_service = of_users.get(process.getuid?.() ?? 0) ?? [];
  for (const [server_id, port] of await findAmongOpenFiles(sharing, of_service, readTrees)) found.set(server_id, port);
  return found;
}

/** Finds stray ports of servers that share the user of the service, by the open files of their processes. */
async function findAmongOpenFiles(
  servers: readonly ListeningServer[],
  listeners: readonly Listener[],
  readTrees: ReadTrees,
): Promise<Map<string, number>> {
  const by_socket = new Map(listeners.map((listener) => [listener.socket, listener]));
  const trees = await readTrees(servers);
  const found = new Map<string, number>();
  for (const server of servers) {
    const isStraySocket = (path: string) => {
      const listener = by_socket.get(path);
      return listener !== undefined && isStray(server, listener);
    };
    for (const { pid } of trees.get(server.server_id) ?? []) {
      const socket = await findOpenFile(pid, isStraySocket);
      const listener = socket === undefined ? undefined : by_socket.get(socket);
      if (!listener) continue;
      found.set(server.server_id, listener.port);
      break;
    }
  }
  return found;
}

function isStray({ ports }: ListeningServer, { port }: Listener): boolean {
  return !Object.values(ports).some((one) => {
    const own = tcpNumbersOf(one);
    return own !== undefined && own.min <= port && port <= own.max;
  });
}
