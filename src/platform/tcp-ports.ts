import { readFileSync } from 'node:fs';

const TABLES = ['/proc/net/tcp', '/proc/net/tcp6'];

let all_addresses: string | undefined;

/** Returns the address that stands for all addresses of this machine, of both families if this process may use both. */
export function allAddresses(): string {
  all_addresses ??= canListen('::', 0) ? '::' : '0.0.0.0';
  return all_addresses;
}

/** Returns whether a TCP port is free at all addresses of this machine. */
export function isFreePort(port: number): boolean {
  return canListen(allAddresses(), port);
}

function canListen(hostname: string, port: number): boolean {
  try {
    Bun.listen({ hostname, port, exclusive: true, socket: { data() {} } }).stop(true);
    return true;
  } catch {
    return false;
  }
}

/** Lists the sockets on a TCP port of this machine, listening or connected, as `findOpenFile` names them. */
export function findSocketsAt(port: number): Set<string> {
  const ending = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  const sockets = new Set<string>();
  for (const table of TABLES) {
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
    // A machine without IPv6 lacks one of the tables.
    return [];
  }
}
