import { ServiceError } from '../../platform/errors.ts';

/**
 * Returns free ports of a range, from a random one on. Skips those in `taken`, and those that cannot be bound because
 * another program uses them. Throws SERVERS_NO_PORTS if there are too few.
 */
export async function findFreePorts(
  { min, max }: { min: number; max: number },
  taken: ReadonlySet<number>,
  count: number,
): Promise<number[]> {
  const found: number[] = [];
  const size = max - min + 1;
  const start = Math.floor(Math.random() * size);
  for (let step = 0; step < size && found.length < count; step += 1) {
    const port = min + ((start + step) % size);
    if (!taken.has(port) && (await canBind(port))) found.push(port);
  }
  if (found.length < count) throw new ServiceError('SERVERS_NO_PORTS', {});
  return found;
}

async function canBind(port: number): Promise<boolean> {
  try {
    Bun.listen({ hostname: '0.0.0.0', port, exclusive: true, socket: { data() {} } }).stop(true);
    (await Bun.udpSocket({ hostname: '0.0.0.0', port })).close();
    return true;
  } catch {
    return false;
  }
}
