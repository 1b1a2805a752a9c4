import { ServiceError } from '../../platform/errors.ts';
import { allAddresses, isFreePort } from '../../platform/tcp-ports.ts';

/**
 * Returns free ports of a range, from a random one on. Skips the `unavailable` ones, and those that another program uses at
 * any address of the machine, for either protocol. Throws SERVERS_NO_PORTS if there are too few.
 */
export async function findFreePorts(
  { min, max }: { min: number; max: number },
  unavailable: ReadonlySet<number>,
  count: number,
): Promise<number[]> {
  const found: number[] = [];
  const size = max - min + 1;
  const start = Math.floor(Math.random() * size);
  for (let step = 0; step < size && found.length < count; step += 1) {
    const port = min + ((start + step) % size);
    if (!unavailable.has(port) && isFreePort(port) && (await isFreeUdpPort(port))) found.push(port);
  }
  if (found.length < count) throw new ServiceError('SERVERS_NO_PORTS', {});
  return found;
}

async function isFreeUdpPort(port: number): Promise<boolean> {
  try {
    (await Bun.udpSocket({ hostname: allAddresses(), port })).close();
    return true;
  } catch {
    return false;
  }
}
