import { closeSync, openSync, readFileSync, readSync } from 'node:fs';
import ipaddr from 'ipaddr.js';
import { pace } from '../pacing.ts';
import { hasErrorCode } from './system-errors.ts';

const TABLES = ['/proc/net/tcp', '/proc/net/tcp6'];
const PACE_EVERY = 256;
/** The kernel's state of a listening socket. */
const LISTENING = '0A';
const READ_BYTES = 65_536;

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

/** A listening socket of this machine. */
export interface Listener {
  port: number;
  user_id: number;
  /** The socket as `findOpenFile` names it. */
  socket: string;
}

/** Lists the listening TCP sockets of this machine. */
export async function listListeners(): Promise<Listener[]> {
  const listeners: Listener[] = [];
  for (const table of TABLES) {
    for (const line of readListening(table)) {
      await pace();
      const [, local = '', , , , , , user_id, , inode] = line.trim().split(/\s+/);
      listeners.push({ port: readPort(local), user_id: Number(user_id), socket: `socket:[${inode}]` });
    }
  }
  return listeners;
}

/** Yields the lines of listening sockets, with which a table begins. A busy machine has many connections after them. */
function* readListening(table: string): Generator<string, void> {
  let file: number;
  try {
    file = openSync(table, 'r');
  } catch (cause) {
    // A machine without IPv6 lacks one of the tables.
    if (hasErrorCode(cause, 'ENOENT')) return;
    throw cause;
  }
  try {
    const bytes = Buffer.alloc(READ_BYTES);
    let rest = '';
    let is_head = true;
    for (let count = readSync(file, bytes); count > 0; count = readSync(file, bytes)) {
      const lines = (rest + bytes.toString('latin1', 0, count)).split('\n');
      rest = lines.pop() ?? '';
      for (const line of is_head ? lines.slice(1) : lines) {
        if (line.trim().split(/\s+/, 4)[3] !== LISTENING) return;
        yield line;
      }
      is_head = false;
    }
  } finally {
    closeSync(file);
  }
}

/** Lists the user of each connection from this machine to one of the ports, by the address and port of its client. */
export async function readConnectionUsers(ports: ReadonlySet<number>): Promise<Map<string, number>> {
  const users = new Map<string, number>();
  for (const table of TABLES) {
    for (const [index, line] of readLines(table).slice(1).entries()) {
      if (index % PACE_EVERY === 0) await pace();
      const [, local = '', remote = '', , , , , user] = line.trim().split(/\s+/);
      if (!ports.has(readPort(remote))) continue;
      users.set(clientKey({ address: readAddress(local), port: readPort(local) }), Number(user));
    }
  }
  return users;
}

/** Returns the key of {@link readConnectionUsers}. */
export function clientKey({ address, port }: { address: string; port: number }): string {
  return `${address} ${port}`;
}

/** Reads the port of `0100007F:1F90`. */
function readPort(name: string): number {
  return Number.parseInt(name.slice(name.indexOf(':') + 1), 16);
}

/** Reads the address of `0100007F:1F90`: words of 32 bits in the byte order of the machine, which is little-endian. */
function readAddress(name: string): string {
  const bytes = Buffer.from(name.slice(0, name.indexOf(':')), 'hex').swap32();
  const address = ipaddr.fromByteArray([...bytes]);
  return ipaddr.process(address.toString()).toNormalizedString();
}

function readLines(file: string): string[] {
  try {
    return readFileSync(file, 'utf8').split('\n');
  } catch {
    // A machine without IPv6 lacks one of the tables.
    return [];
  }
}
