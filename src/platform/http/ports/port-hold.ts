import { ptr, read } from 'bun:ffi';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { assert } from '../../errors.ts';
import { parseAddress } from '../../networks.ts';
import { isShortOfSpace } from '../../system/disk-space.ts';
import { libc } from '../../system/libc.ts';
import {
  identifyProcess,
  isRunning,
  listProcesses,
  type ProcessIdentity,
  readUserIds,
  readVariable,
  signalProcess,
} from '../../system/processes.ts';

/** A port that stays the service's while the service is stopped. */
export interface PortHold {
  /** Releases the port. */
  release(): void;
}

interface Held {
  process: ProcessIdentity;
  addresses: string[];
  port: number;
}

interface HoldOptions {
  addresses: string[];
  port: number;
  /** The file that names the holder. */
  file: string;
}

/**
 * Holds a port for the service's user beyond the end of this process: a small process binds it, without listening. The kernel
 * refuses it to every other user; a server of the same user may listen beside it with SO_REUSEPORT. Returns undefined if another
 * program has the port. Useful only if game servers run as other users.
 */
export function holdPort({ addresses, port, file }: HoldOptions): PortHold | undefined {
  const held = readHeld(file);
  const release = () => releaseHold(file);
  if (held && held.port === port && held.addresses.join() === addresses.join()) return { release };
  release();
  const sockets: number[] = [];
  try {
    for (const address of addresses) {
      const socket = bindSocket(address, port);
      if (socket === 'taken') return undefined;
      if (socket !== 'no such address') sockets.push(socket);
    }
    const holder = startHolder(sockets, file);
    writeHeld(file, { process: holder, addresses, port });
    return { release };
  } finally {
    for (const socket of sockets) libc.close(socket);
  }
}

/** Ends the process that holds the port, and removes its file, so that other programs can have the port. */
export function releaseHold(file: string): void {
  for (const holder of findHolders(file)) endHolder(holder);
  rmSync(file, { force: true });
}

/** Returns the holder that the file names, if it runs. */
function readHeld(file: string): Held | undefined {
  if (!existsSync(file)) return undefined;
  try {
    const held: Held = JSON.parse(readFileSync(file, 'utf8'));
    return isRunning(held.process) ? held : undefined;
  } catch {
    // A power failure truncated the file, and ended the holder too.
    return undefined;
  }
}

/**
 * Writes the file that names the holder. On a full disk there is none, and `findHolders` finds the holder by its
 * variable.
 */
function writeHeld(file: string, held: Held): void {
  try {
    writeFileSync(file, JSON.stringify(held), { mode: 0o600 });
  } catch (error) {
    if (!isShortOfSpace(error)) throw error;
  }
}

/**
 * Returns the processes whose variable names this file. The file itself may lack one: after a kill, or on a full disk.
 */
function findHolders(file: string): ProcessIdentity[] {
  const own_id = process.getuid?.();
  return listProcesses()
    .filter((pid) => readVariable(pid, HOLD_MARK) === file && readUserIds(pid).every((user_id) => user_id === own_id))
    .flatMap((pid) => identifyProcess(pid) ?? []);
}

/** Kills a holder and waits for its end: until then the port is taken. */
function endHolder(holder: ProcessIdentity): void {
  signalProcess(holder.pid, 'SIGKILL');
  for (let waited_ms = 0; waited_ms < HOLDER_ENDS_WITHIN_MS && isRunning(holder); waited_ms += 1) Bun.sleepSync(1);
}

const HOLDER_ENDS_WITHIN_MS = 1_000;
/** The variable that marks a holder, for the service and for operators who look for the process that has the port. */
const HOLD_MARK = 'MUSTER_PORT_HOLD';
/** The longest possible sleep: 68 years. */
const SLEEP = 'exec sleep 2147483647';

/** Starts a process that inherits the sockets and does nothing. */
function startHolder(sockets: number[], file: string): ProcessIdentity {
  const child = Bun.spawn(['/bin/sh', '-c', SLEEP], {
    cwd: '/',
    env: { PATH: '/usr/bin:/bin', [HOLD_MARK]: file },
    detached: true,
    stdio: ['ignore', 'ignore', 'ignore', ...sockets],
  });
  child.unref();
  const holder = identifyProcess(child.pid);
  assert(holder !== undefined, 'the holder of the port runs');
  return holder;
}

const [AF_INET, AF_INET6, SOCK_STREAM, SOCK_CLOEXEC] = [2, 10, 1, 0o2000000];
const [SOL_SOCKET, SO_REUSEADDR, SO_REUSEPORT] = [1, 2, 15];
const EADDRINUSE = 98;

/** Binds a socket that does not listen. Only sockets of the same user can listen beside it. */
function bindSocket(address: string, port: number): number | 'taken' | 'no such address' {
  const bound = toSocketAddress(address, port);
  const family = bound.length === IPV4_SOCKET_ADDRESS_BYTES ? AF_INET : AF_INET6;
  const socket = libc.socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (socket < 0) return 'no such address';
  // Earlier connections that the kernel still remembers must not prevent it.
  setOption(socket, SO_REUSEADDR, 1);
  if (libc.bind(socket, ptr(bound), bound.length) !== 0) {
    const location = libc.__errno_location();
    const error = location === null ? 0 : read.i32(location, 0);
    libc.close(socket);
    return error === EADDRINUSE ? 'taken' : 'no such address';
  }
  // Only after it is bound, so that the socket of a second Muster is refused.
  setOption(socket, SO_REUSEADDR, 0);
  setOption(socket, SO_REUSEPORT, 1);
  return socket;
}

function setOption(socket: number, option: number, value: number): void {
  libc.setsockopt(socket, SOL_SOCKET, option, ptr(new Int32Array([value])), 4);
}

const IPV4_SOCKET_ADDRESS_BYTES = 16;
const IPV6_SOCKET_ADDRESS_BYTES = 28;

/** Returns an address as bind(2) takes it: struct sockaddr_in or sockaddr_in6. */
function toSocketAddress(address: string, port: number): Uint8Array {
  const parsed = parseAddress(address);
  assert(parsed !== undefined, 'only addresses are held');
  const is_ipv4 = parsed.kind() === 'ipv4';
  const socket_address = new Uint8Array(is_ipv4 ? IPV4_SOCKET_ADDRESS_BYTES : IPV6_SOCKET_ADDRESS_BYTES);
  const view = new DataView(socket_address.buffer);
  // In the byte order of the machine, which is little-endian on x64 and arm64.
  view.setUint16(0, is_ipv4 ? AF_INET : AF_INET6, true);
  view.setUint16(2, port);
  socket_address.set(parsed.toByteArray(), is_ipv4 ? 4 : 8);
  return socket_address;
}
