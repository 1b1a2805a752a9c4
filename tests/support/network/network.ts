import { $ } from 'bun';
import { IS_FULL_LENGTH } from '../full-length.ts';

const PROGRAMS = ['ip', 'unshare', 'nsenter'].map((name) => Bun.which(name));

/** Why no network can be made here; undefined if one can. */
export const WITHOUT_NETWORK = !IS_FULL_LENGTH
  ? 'only a run at full length tries it'
  : process.getuid?.() !== 0
    ? 'a network needs root'
    : PROGRAMS.includes(null)
      ? 'install iproute2'
      : undefined;

/** A network of a test's own, in which all ports are free. */
export interface Network extends AsyncDisposable {
  /** The address of programs in it. */
  address: string;
  /** The address of this machine, for them. */
  outer_address: string;
  /** Returns a command that runs another one in the network. */
  enter(command: string[]): string[];
  /** Takes the link to this machine down: packets in both directions are lost. */
  cut(): Promise<void>;
  /** Takes the link up again. */
  heal(): Promise<void>;
}

let count = 0;

/** Makes a network namespace, and joins it to this machine's network. */
export async function openNetwork(): Promise<Network> {
  const [second = 0, third = 0] = crypto.getRandomValues(new Uint8Array(2));
  // A range for tests of networks (RFC 2544), of which each pair of addresses is a network.
  const base = `198.${18 + (second % 2)}.${third}`;
  const [outer_address, address] = [`${base}.1`, `${base}.2`];
  count += 1;
  const link = `muster${process.pid % 1_000_000}-${count}`;
  const holder = Bun.spawn(['unshare', '--net', 'sleep', 'infinity'], { stdio: ['ignore', 'ignore', 'inherit'] });
  const enter = (command: string[]) => [Bun.which('nsenter') ?? '', `--net=/proc/${holder.pid}/ns/net`, ...command];
  const own = (await $`readlink /proc/self/ns/net`.text()).trim();
  // The process that unshare becomes has its own network a moment after it has begun.
  while ((await $`readlink /proc/${holder.pid}/ns/net`.nothrow().text()).trim() === own) await Bun.sleep(10);
  await $`ip link add ${link} type veth peer name eth0 netns ${String(holder.pid)}`.quiet();
  await $`ip addr add ${outer_address}/30 dev ${link}`.quiet();
  await $`ip link set ${link} up`.quiet();
  for (const command of ['link set lo up', `addr add ${address}/30 dev eth0`, 'link set eth0 up']) {
    await $`${enter(['ip', ...command.split(' ')])}`.quiet();
  }
  return {
    address,
    outer_address,
    enter,
    async cut() {
      await $`ip link set ${link} down`.quiet();
    },
    async heal() {
      await $`ip link set ${link} up`.quiet();
    },
    async [Symbol.asyncDispose]() {
      // The kernel removes both ends of the link with the namespace.
      holder.kill('SIGKILL');
      await holder.exited;
    },
  };
}
