import { ptr } from 'bun:ffi';
import { parseAddress } from '../../networks.ts';
import { libc } from '../../system/libc.ts';

/** A filter has two steps for each network of IPv4 and five for one of IPv6; the kernel accepts 4,096. */
const NETWORKS_MAX = 256;

/**
 * Makes the kernel drop the packets that these networks send to a listening socket, so that they open no connection there.
 * Open connections stay. An empty list lets every network connect again. Has no effect if the kernel refuses: newer ones
 * require CAP_NET_ADMIN.
 */
export function refuseNetworks(listener: number, networks: readonly string[]): void {
  const addresses = networks
    .slice(0, NETWORKS_MAX)
    .flatMap((network) => parseAddress(network.replace(/\/64$/, '')) ?? []);
  if (addresses.length === 0) {
    libc.setsockopt(listener, SOL_SOCKET, SO_DETACH_FILTER, new Int32Array(1), 4);
    return;
  }
  const steps = compileFilter(addresses.map((address) => Buffer.from(address.toByteArray())));
  // struct sock_fprog: the number of steps, and their address.
  const program = new DataView(new ArrayBuffer(16));
  program.setUint16(0, steps.length / STEP_BYTES, true);
  program.setBigUint64(8, BigInt(ptr(steps)), true);
  libc.setsockopt(listener, SOL_SOCKET, SO_ATTACH_FILTER, new Uint8Array(program.buffer), 16);
}

/** A classic BPF program (linux/filter.h) that drops packets from these addresses, and from the /64 of IPv6 ones. */
function compileFilter(addresses: Buffer[]): Uint8Array {
  const steps: Step[] = [];
  const ipv4 = addresses.filter(({ length }) => length === 4);
  const ipv6 = addresses.filter(({ length }) => length === 16);
  steps.push(
    [LOAD_BYTE, 0, 0, IP_HEADER],
    [AND, 0, 0, 0xf0],
    [JUMP_IF_EQUAL, 1, 0, 0x40],
    [JUMP, 0, 0, 1 + 2 * ipv4.length + 1],
  );
  steps.push([LOAD_WORD, 0, 0, IP_HEADER + IPV4_SOURCE]);
  for (const address of ipv4) steps.push([JUMP_IF_EQUAL, 0, 1, address.readUInt32BE()], [RETURN, 0, 0, DROP]);
  steps.push([RETURN, 0, 0, PASS]);
  for (const address of ipv6) {
    steps.push([LOAD_WORD, 0, 0, IP_HEADER + IPV6_SOURCE], [JUMP_IF_EQUAL, 0, 3, address.readUInt32BE()]);
    steps.push(
      [LOAD_WORD, 0, 0, IP_HEADER + IPV6_SOURCE + 4],
      [JUMP_IF_EQUAL, 0, 1, address.readUInt32BE(4)],
      [RETURN, 0, 0, DROP],
    );
  }
  steps.push([RETURN, 0, 0, PASS]);
  const bytes = new DataView(new ArrayBuffer(steps.length * STEP_BYTES));
  for (const [index, [code, if_true, if_false, value]] of steps.entries()) {
    const start = index * STEP_BYTES;
    bytes.setUint16(start, code, true);
    bytes.setUint8(start + 2, if_true);
    bytes.setUint8(start + 3, if_false);
    bytes.setUint32(start + 4, value, true);
  }
  return new Uint8Array(bytes.buffer);
}

/** An instruction, how many steps it skips if its condition holds and if not, and its operand. */
type Step = [code: number, if_true: number, if_false: number, value: number];
const STEP_BYTES = 8;
const [LOAD_WORD, LOAD_BYTE, AND, JUMP, JUMP_IF_EQUAL, RETURN] = [0x20, 0x30, 0x54, 0x05, 0x15, 0x06];
/** SKF_NET_OFF: offsets from here on are offsets in the IP header. */
const IP_HEADER = 0xfff00000;
const [IPV4_SOURCE, IPV6_SOURCE] = [12, 8];
const [DROP, PASS] = [0, 0xffffffff];

const [SOL_SOCKET, SO_ATTACH_FILTER, SO_DETACH_FILTER] = [1, 26, 27];
