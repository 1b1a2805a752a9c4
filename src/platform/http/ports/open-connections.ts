import { closeSync, openSync, readdirSync, readFileSync, readSync, statSync } from 'node:fs';
import { assert } from '../../errors.ts';
import { pace } from '../../pacing.ts';
import { libc } from '../../system/libc.ts';

/** The address of one end of a socket. */
interface SocketAddress {
  /** IPv4 inside IPv6 as IPv4. */
  address: string;
  port: number;
  /** The address, or the /64 of an IPv6 address, which belongs to one client. */
  network: string;
}

/** A connection that a client opened to a port of the service, with the client's address. */
export interface Connection extends SocketAddress {
  descriptor: number;
}

/** The open descriptors of this process. */
export interface OpenDescriptors {
  /** The number of all descriptors, of connections and of everything else. */
  count: number;
  connections: Connection[];
  /** Descriptors of the sockets that listen at the ports. */
  listeners: number[];
}

/** The table of this process's descriptors. It can be read even if no descriptor is free. */
export interface DescriptorTable extends Disposable {
  /** Returns the number of all descriptors without reading them; undefined before Linux 6.2. */
  count(): number | undefined;
  /** Reads all of them, in about a microsecond each. Requests are served meanwhile, so a connection may be gone afterwards. */
  read(): Promise<OpenDescriptors>;
}

/** What the kernel knows about a connection's past. */
export interface Activity {
  /** Whether neither side has closed it. */
  is_open: boolean;
  /** Whether the client has sent anything. */
  has_client_sent: boolean;
  /** Whether the client has received everything that was written to it. */
  has_client_received_all: boolean;
  /** Milliseconds since the service last sent something, or since the connection was opened. */
  since_sent_ms: number;
}

/** Returns how many descriptors this process may have. Bun raises the soft limit to the hard one when it starts. */
export function readDescriptorsMax(): number {
  const [, max] = /^Max open files +(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? [];
  assert(max !== undefined, 'the kernel reports the limit of open files');
  return Number(max);
}

/** Returns how many descriptors this process has. */
export function countDescriptors(): number {
  // Before Linux 6.2, the directory has no size.
  return statSync('/proc/self/fd').size || readdirSync('/proc/self/fd').length;
}

/** Opens the table of this process's descriptors, with the connections to its ports. */
export function openDescriptorTable(ports: ReadonlySet<number>): DescriptorTable {
  const status = openSync('/proc/self/status', 'r');
  const text = Buffer.alloc(STATUS_BYTES_MAX);

  /** All descriptors are lower: the kernel's own table has this size. */
  function readTableSize(): number {
    const bytes = readSync(status, text, 0, text.length, 0);
    const [, size] = /^FDSize:\t(\d+)/m.exec(text.toString('latin1', 0, bytes)) ?? [];
    assert(size !== undefined, 'the kernel reports the size of the table');
    return Number(size);
  }

  return {
    count: () => statSync('/proc/self/fd').size || undefined,
    async read() {
      let count = 0;
      const connections: Connection[] = [];
      const listeners: number[] = [];
      for (let descriptor = 0, size = readTableSize(); descriptor < size; descriptor += 1) {
        if (descriptor % PACE_EVERY === 0) await pace();
        const client = readClientAddress(descriptor);
        if (!client && libc.fcntl(descriptor, F_GETFD) < 0) continue;
        count += 1;
        const own_port = readOwnPort(descriptor);
        if (own_port === undefined || !ports.has(own_port)) continue;
        if (client) connections.push({ descriptor, ...client });
        else listeners.push(descriptor);
      }
      return { count, connections, listeners };
    },
    [Symbol.dispose]: () => closeSync(status),
  };
}

/** Returns the activity of a connection; undefined if the descriptor has none. */
export function readActivity(descriptor: number): Activity | undefined {
  length[0] = info.length;
  if (libc.getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, info, length) !== 0) return undefined;
  return {
    is_open: info[INFO.state] === TCP_ESTABLISHED,
    has_client_sent: info_view.getUint32(INFO.data_segments_in, true) > 0,
    has_client_received_all:
      info_view.getUint32(INFO.unacknowledged, true) + info_view.getUint32(INFO.unsent_bytes, true) === 0,
    since_sent_ms: info_view.getUint32(INFO.last_data_sent, true),
  };
}

/** Closes a connection for both sides if it still exists. Bun frees the descriptor as if the client had left. */
export function shutConnection({ descriptor, address, port }: Connection): void {
  const client = readClientAddress(descriptor);
  if (client?.address === address && client.port === port) libc.shutdown(descriptor, SHUT_RDWR);
}

const STATUS_BYTES_MAX = 4_096;
const PACE_EVERY = 256;
const [F_GETFD, SHUT_RDWR, IPPROTO_TCP, TCP_INFO, TCP_ESTABLISHED] = [1, 2, 6, 11, 1];
/** Offsets of fields in struct tcp_info (linux/tcp.h). */
const INFO = {
  state: 0,
  unacknowledged: 24,
  last_data_sent: 44,
  unsent_bytes: 144,
  data_segments_in: 152,
} as const;
const INFO_BYTES = 160;
const info = new Uint8Array(INFO_BYTES);
const info_view = new DataView(info.buffer);

const [AF_INET, AF_INET6] = [2, 10];
/** The size of struct sockaddr_in6, the longer one. */
const SOCKET_ADDRESS_BYTES = 28;
const socket_address = new Uint8Array(SOCKET_ADDRESS_BYTES);
const socket_address_view = new DataView(socket_address.buffer);
const length = new Uint32Array(1);

/**
 * Reads the address of one end of a socket into `socket_address`: of the client with `getpeername`, of this process with
 * `getsockname`. Returns false if the descriptor has no IP address there.
 */
function readSocketAddress(call: typeof libc.getpeername, descriptor: number): boolean {
  length[0] = SOCKET_ADDRESS_BYTES;
  if (call(descriptor, socket_address, length) !== 0) return false;
  const family = readFamily();
  return family === AF_INET || family === AF_INET6;
}

const readFamily = (): number => socket_address_view.getUint16(0, true);
const readPort = (): number => socket_address_view.getUint16(2);

function readOwnPort(descriptor: number): number | undefined {
  return readSocketAddress(libc.getsockname, descriptor) ? readPort() : undefined;
}

/** Returns the address of a connection's client, IPv4 inside IPv6 as IPv4; undefined if it has no IP address. */
function readClientAddress(descriptor: number): SocketAddress | undefined {
  if (!readSocketAddress(libc.getpeername, descriptor)) return undefined;
  const view = socket_address_view;
  const port = readPort();
  if (readFamily() === AF_INET) return ofIpv4(socket_address.subarray(4, 8), port);
  const is_mapped = view.getUint32(8) === 0 && view.getUint32(12) === 0 && view.getUint32(16) === 0xffff;
  if (is_mapped) return ofIpv4(socket_address.subarray(20, 24), port);
  const groups = Array.from({ length: 8 }, (_, index) => view.getUint16(8 + 2 * index).toString(16));
  return { address: groups.join(':'), network: `${groups.slice(0, 4).join(':')}::/64`, port };
}

function ofIpv4(bytes: Uint8Array, port: number): SocketAddress {
  const address = bytes.join('.');
  return { address, network: address, port };
}
