import { StartError } from '../../platform/errors.ts';
import { isFreePort } from '../../platform/system/tcp-ports.ts';

/** Ports below those that other services give to game servers by default, and below those of outgoing connections. */
const FIRST_PORT = 10_000;
const BLOCK_SIZE = 500;
const BLOCKS = 32;

/** A block of ports that no other throwaway service of this machine uses. */
export interface PortBlock extends Disposable {
  service_port: number;
  clock_port: number;
  /** The range of the other ports. */
  server_ports: string;
}

/**
 * Claims a block of ports until it is disposed of or this process ends. A claim is an abstract unix socket: the kernel gives
 * its name to one process of a network namespace, and ports are unique in the same. Throws StartError if all are claimed.
 */
export function claimPorts(): PortBlock {
  for (let block = 0; block < BLOCKS; block += 1) {
    const claim = attempt(() => Bun.listen({ unix: `\0muster-test-${block}`, socket: { data() {} } }));
    if (!claim) continue;
    const first = FIRST_PORT + block * BLOCK_SIZE;
    const last = first + BLOCK_SIZE - 1;
    const service_port = nextFreePort(first, last);
    const clock_port = nextFreePort(service_port + 1, last);
    if (clock_port < last) {
      const server_ports = `${clock_port + 1}-${last}`;
      return { service_port, clock_port, server_ports, [Symbol.dispose]: () => void claim.stop(true) };
    }
    claim.stop(true);
  }
  const last = FIRST_PORT + BLOCKS * BLOCK_SIZE - 1;
  throw new StartError(
    `All ports for test services (${FIRST_PORT} to ${last}) are in use: wait until one of the at most ${BLOCKS} test runs has ended.`,
  );
}

/** Returns the first free port of a range; one more than the last if all are in use. */
function nextFreePort(first: number, last: number): number {
  let port = first;
  while (port <= last && !isFreePort(port)) port += 1;
  return port;
}

function attempt<Result>(work: () => Result): Result | undefined {
  try {
    return work();
  } catch {
    return undefined;
  }
}
