import { networkInterfaces } from 'node:os';
import { claimPorts, type PortBlock } from '../../../src/commands/test/ports.ts';
import { isFreePort } from '../../../src/platform/system/tcp-ports.ts';
import { waitFor } from '../wait.ts';

/** Whether this machine has the loopback address of IPv6. */
export const HAS_IPV6 = Object.values(networkInterfaces()).some((all) => all?.some(({ address }) => address === '::1'));

interface PortRange {
  min: number;
  max: number;
}

/** Ports of one test, which no other test and no other run of this machine uses. */
export interface TestPorts extends Disposable {
  /** Where the service and its game servers are. */
  settings: { MUSTER_PORT: string; MUSTER_SERVER_PORTS: string };
  /** The range of game servers. */
  range: PortRange;
}

/**
 * Claims ports until they are disposed of or this process ends, as `muster test` does. That a port can be bound is not
 * enough: a service chooses the port of a server long before the server listens. The kernel gives connections none of these.
 */
export async function claimTestPorts(): Promise<TestPorts> {
  // Other runs of this machine may have claimed all.
  const block = await waitFor(() => claimUnlessAllAre(), 'ports that no other test has claimed');
  const { service_port, server_ports } = block;
  return {
    settings: { MUSTER_PORT: String(service_port), MUSTER_SERVER_PORTS: server_ports },
    range: toRange(server_ports),
    [Symbol.dispose]: () => block[Symbol.dispose](),
  };
}

function claimUnlessAllAre(): PortBlock | undefined {
  try {
    return claimPorts();
  } catch {
    return undefined;
  }
}

function toRange(text: string): PortRange {
  const [min = 0, max = 0] = text.split('-').map(Number);
  return { min, max };
}

/** The ports of this process, claimed until it ends. */
let own: PortRange | undefined;
let next_port = 0;

/** Returns a port that nothing uses. */
export function findFreePort(): number {
  if (!own) {
    own = toRange(claimPorts().server_ports);
    next_port = own.min;
  }
  const { min, max } = own;
  for (let tried = min; tried <= max; tried += 1) {
    const port = next_port;
    next_port = port === max ? min : port + 1;
    if (isFreePort(port)) return port;
  }
  throw new Error(`none of the ports from ${min} to ${max} is free`);
}
