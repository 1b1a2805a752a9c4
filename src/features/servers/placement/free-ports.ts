import { pace } from '../../../platform/pacing.ts';
import { allAddresses, isFreePort } from '../../../platform/system/tcp-ports.ts';

/**
 * Returns free ports of a range, from a random one on. Skips the `unavailable` ones, and those that another program uses at
 * any address of the machine, for either protocol. Returns undefined if there are too few.
 */
export async function findFreePorts(
  { min, max }: { min: number; max: number },
  unavailable: ReadonlySet<number>,
  count: number,
): Promise<number[] | undefined> {
  const free_ports: number[] = [];
  const size = max - min + 1;
  const start = Math.floor(Math.random() * size);
  for (let step = 0; step < size && free_ports.length < count; step += 1) {
    const port = min + ((start + step) % size);
    if (unavailable.has(port)) continue;
    if (isFreePort(port) && (await isFreeUdpPort(port))) free_ports.push(port);
    // Servers can hold all ports for UDP, and then each of them is tried.
    await pace();
  }
  return free_ports.length < count ? undefined : free_ports;
}

async function isFreeUdpPort(port: number): Promise<boolean> {
  try {
    (await Bun.udpSocket({ hostname: allAddresses(), port })).close();
    return true;
  } catch {
    return false;
  }
}
