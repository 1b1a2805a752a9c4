import { existsSync, readFileSync } from 'node:fs';

const TABLE_IPV4 = '/proc/net/tcp';
/** A machine without IPv6 has no such table. */
const TABLE_IPV6 = '/proc/net/tcp6';

/** The address that stands for all addresses of this machine, of both families. */
export const ALL_ADDRESSES = existsSync(TABLE_IPV6) ? '::' : '0.0.0.0';

/** Returns whether a TCP port is free at all addresses of this machine. */
export function isFreePort(port: number): boolean {
  try {
    Bun.listen({ hostname: ALL_ADDRESSES, port, exclusive: true, socket: { data() {} } }).stop(true);
    return true;
  } catch {
    return false;
  }
}

/** Lists the sockets on a TCP port of this machine, listening or connected, as `readOpenFiles` names them. */
export function findSocketsAt(port: number): Set<string> {
  const ending = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  const sockets = new Set<string>();
  for (const table of [TABLE_IPV4, TABLE_IPV6]) {
    for (const line of readLines(table).slice(1)) {
      const fields = line.trim().split(/\s+/);
      const [local = '', inode = '0'] = [fields[1], fields[9]];
      if (local.endsWith(ending) && inode !== '0') sockets.add(`socket:[${inode}]`);
    }
  }
  return sockets;
}

function readLines(file: string): string[] {
  try {
    return readFileSync(file, 'utf8').split('\n');
  } catch {
    return [];
  }
}
