import type { PortProtocol } from '../platform/tokens/caller.ts';

/** A port of a server, as a host name or a path names it. */
export interface NamedPort {
  server_id: string;
  label: string;
}

/** Where players reach a port. */
export interface PublicAddress {
  hostname: string;
  port: number;
  is_tls: boolean;
}

/** What the address of a port depends on. */
export interface AddressedPort {
  protocol: PortProtocol;
  /** The host of its machine. */
  public_hostname?: string;
  /** Its name behind the gateway, if it has one. */
  gateway_name?: string;
  /** The port of its relay, if it has one. */
  relay_port?: number;
  /** Set if the gateway reports its players, who must come through the gateway then. */
  presence?: 'gateway';
}

/** Returns the address of a port behind the gateway; undefined if players connect to the server itself. */
export type AddressOf = (port: AddressedPort) => PublicAddress | undefined;

/** The longest label of a host name (RFC 1035, 2.3.4). */
const NAME_LENGTH_MAX = 63;
const NAME = /^([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})-([a-z0-9](?:[a-z0-9-]*[a-z0-9])?)$/;

/** Returns the name of a port, `<server>-<port>`; undefined if that is not a valid label of a host name. */
export function toPortName({ server_id, label }: NamedPort): string | undefined {
  const name = `${server_id}-${label}`;
  return name.length <= NAME_LENGTH_MAX && NAME.test(name) ? name : undefined;
}

/** Reads the name of a port. */
export function parsePortName(name: string): NamedPort | undefined {
  const [, server_id, label] = name.length <= NAME_LENGTH_MAX ? (NAME.exec(name) ?? []) : [];
  return server_id !== undefined && label !== undefined ? { server_id, label } : undefined;
}
