import {
  Command,
  INETProtocol,
  IPv4Address,
  IPv4ProxyAddress,
  IPv6Address,
  IPv6ProxyAddress,
  Peer,
  TransportProtocol,
  V1ProxyProtocol,
  V2ProxyProtocol,
} from 'proxy-protocol-js';
import { assert } from '../../../platform/errors.ts';
import { type Address, parseAddress } from '../../../platform/networks.ts';

export type ProxyProtocol = 'v1' | 'v2';

/** The ends of a client's connection. */
export interface ClientEnds {
  remoteAddress: string;
  remotePort: number;
  localAddress: string;
  localPort: number;
}

/** Returns the header of the PROXY protocol, which tells a server the address of a client. */
export function encodeProxyHeader(version: ProxyProtocol, ends: ClientEnds): Buffer {
  const [client, own] = [parseAddress(ends.remoteAddress), parseAddress(ends.localAddress)];
  assert(client?.kind() === own?.kind() && client && own, 'the kernel gives both ends in one family');
  const header = version === 'v1' ? textHeader(client, own, ends) : binaryHeader(client, own, ends);
  return Buffer.from(header.build());
}

function textHeader(client: Address, own: Address, { remotePort, localPort }: ClientEnds): V1ProxyProtocol {
  const family = client.kind() === 'ipv4' ? INETProtocol.TCP4 : INETProtocol.TCP6;
  return new V1ProxyProtocol(family, new Peer(client.toString(), remotePort), new Peer(own.toString(), localPort));
}

function binaryHeader(client: Address, own: Address, { remotePort, localPort }: ClientEnds): V2ProxyProtocol {
  const [from, to] = [client.toByteArray(), own.toByteArray()];
  const addresses =
    client.kind() === 'ipv4'
      ? new IPv4ProxyAddress(IPv4Address.createFrom(from), remotePort, IPv4Address.createFrom(to), localPort)
      : new IPv6ProxyAddress(IPv6Address.createFrom(from), remotePort, IPv6Address.createFrom(to), localPort);
  return new V2ProxyProtocol(Command.PROXY, TransportProtocol.STREAM, addresses);
}
