import { isIP, isIPv4, isIPv6 } from 'node:net';
import { networkInterfaces } from 'node:os';
import type { ServerPort } from '../../tables.ts';
import { type ApiAddress, readApiAddress } from '../api-address.ts';

/** The address in a container's network at which the machine's name server answers. */
const NAME_SERVER = '169.254.1.1';

/**
 * The addresses in a container's network. They differ from the machine's, so that clients on the machine can reach the
 * container. Networks of containers are not connected, so all use the same addresses.
 */
const IPV4_ADDRESS = ['--address', '198.18.0.2', '--netmask', '30', '--gateway', '198.18.0.1'];
const IPV6_ADDRESS = ['--address', 'fd4d:7573:7465:72::2', '--gateway', 'fd4d:7573:7465:72::1'];

/**
 * Networks that containers cannot connect to: private and reserved ones, the machine's neighbors, clouds' metadata
 * services, and those of IPv6 by which a gateway would lead to all of them.
 */
const PRIVATE_NETWORKS = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '168.63.129.16',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '240.0.0.0/4',
  '64:ff9b::/96',
  '64:ff9b:1::/48',
  '2001::/32',
  '2002::/16',
  'fc00::/7',
  'fec0::/10',
];

/** The network of a container, as the programs that set it up get it. */
export interface ContainerNetwork {
  pasta_arguments: string[];
  /** The rules for nft: which ports are forwarded inside, and what the container may connect to. */
  rules: string;
}

/** A port or range of the machine, and the port of the container that it leads to. */
interface Forward {
  protocol: 'tcp' | 'udp';
  /** As pasta and nft write it. */
  outside: string;
  inside: number | undefined;
}

/** Plans the network of a container: it can answer everyone, and connect to the Internet and to the API. */
export function planNetwork(
  ports: Record<string, ServerPort>,
  api_url: string,
  machine_addresses = readAddresses(),
): ContainerNetwork {
  const forwards = Object.values(ports).flatMap((port) => forwardOf(port) ?? []);
  const api = readApiAddress(api_url);
  const all = [...machine_addresses.outer, ...machine_addresses.of_loopback];
  return {
    pasta_arguments: pastaArguments(forwards, api, machine_addresses.outer),
    rules: rulesOf(forwards, api, all),
  };
}

function pastaArguments(forwards: Forward[], api: ApiAddress, addresses: string[]): string[] {
  const listOf = (protocol: string) => {
    const some = forwards.filter((one) => one.protocol === protocol).map(({ outside }) => outside);
    return some.length > 0 ? some.join(',') : 'none';
  };
  const [has_ipv4, has_ipv6] = [addresses.some(isIPv4), addresses.some(isIPv6)];
  return [
    '--foreground',
    '--quiet',
    '--runas',
    '0:0',
    '--config-net',
    '--no-map-gw',
    '--dns-forward',
    NAME_SERVER,
    '--tcp-ports',
    listOf('tcp'),
    '--udp-ports',
    listOf('udp'),
    // The only port that leads from the container's loopback address to the machine's.
    '--tcp-ns',
    api.is_loopback ? String(api.port) : 'none',
    '--udp-ns',
    'none',
    ...(has_ipv4 || !has_ipv6 ? IPV4_ADDRESS : ['--ipv6-only']),
    ...(has_ipv6 ? IPV6_ADDRESS : ['--ipv4-only']),
  ];
}

/**
 * Returns the rules of a container's network. pasta forwards each port to the same number inside, because some of its
 * versions lose answers by UDP otherwise; the rules lead it to the port on which the program listens.
 */
function rulesOf(forwards: Forward[], api: ApiAddress, machine_addresses: string[]): string {
  const moved = forwards.flatMap(({ protocol, outside, inside }) =>
    inside === undefined ? [] : `${protocol} dport ${outside} redirect to :${inside}`,
  );
  const setOf = (addresses: string[]) => `{ ${addresses.join(', ')} }`;
  const forbidden = [...PRIVATE_NETWORKS, ...machine_addresses];
  const [forbidden_ipv4, forbidden_ipv6] = [
    forbidden.filter((one) => !one.includes(':')),
    forbidden.filter((one) => one.includes(':')),
  ];
  const family = isIPv6(api.host) ? 'ip6' : 'ip';
  const is_api_outside = isIP(api.host) !== 0 && !api.is_loopback;
  return `table inet muster {
  chain arriving {
    type nat hook prerouting priority -100;
    ${moved.join('\n    ')}
  }
  chain arriving_from_machine {
    type nat hook output priority -100;
    ${moved.map((one) => `oifname "lo" ${one}`).join('\n    ')}
  }
  chain leaving {
    type filter hook output priority 0;
    oifname "lo" accept
    ct state established,related accept
    ip daddr ${NAME_SERVER} meta l4proto { tcp, udp } th dport 53 accept
    ${is_api_outside ? `${family} daddr ${api.host} tcp dport ${api.port} accept` : ''}
    ip daddr ${setOf(forbidden_ipv4)} reject
    ip6 daddr ${setOf(forbidden_ipv6)} reject
    ip6 daddr fe80::/10 meta l4proto != ipv6-icmp reject
  }
}
`;
}

function forwardOf({ protocol, internal_port, public_port, port_range }: ServerPort): Forward | undefined {
  const transport = protocol === 'udp' ? 'udp' : 'tcp';
  if (port_range) return { protocol: transport, outside: `${port_range.min}-${port_range.max}`, inside: undefined };
  if (public_port === undefined) return undefined;
  const inside = internal_port === public_port ? undefined : internal_port;
  return { protocol: transport, outside: String(public_port), inside };
}

/** The addresses of this machine, without those of one link and those that each machine has for itself. */
interface MachineAddresses {
  /** Those at which others may reach it. */
  outer: string[];
  /** Those of its loopback device: some machines have their public address there. */
  of_loopback: string[];
}

function readAddresses(): MachineAddresses {
  const all = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? []);
  const known = all.filter(({ address, scopeid }) => !scopeid && !isOwnLoopback(address));
  const listOf = (is_internal: boolean) => [
    ...new Set(known.filter(({ internal }) => internal === is_internal).map(({ address }) => address)),
  ];
  return { outer: listOf(false), of_loopback: listOf(true) };
}

const isOwnLoopback = (address: string): boolean => address === '::1' || address.startsWith('127.');

export const RESOLV_CONF = `nameserver ${NAME_SERVER}\n`;
export const HOSTS = '127.0.0.1 localhost server\n::1 localhost server\n';
