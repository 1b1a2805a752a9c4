import { assert, ServiceError } from '../../platform/errors.ts';
import { toPortName } from '../port-names.ts';
import type { ServerPort } from './tables.ts';
import type { CreateServer } from './wire.ts';

/** Returns the ports of a server to create, as stored. Throws an error that says what is wrong with them. */
export function checkPorts({ mode, ports }: CreateServer['network']): Record<string, ServerPort> {
  refuseSharedVariables(Object.keys(ports));
  const checked = Object.entries(ports).map(([label, requested]): [string, ServerPort] => {
    const routing = requested.routing ?? { game_guard: {} };
    const is_host = 'host' in routing;
    if (is_host === 'game_guard' in routing)
      throw new ServiceError('SERVERS_MUST_SPECIFY_ROUTING_TYPE', { port: label });
    if (is_host && requested.protocol !== 'tcp' && requested.protocol !== 'udp') {
      throw new ServiceError('SERVERS_UNSUPPORTED_HOST_PROTOCOL', { port: label });
    }
    if (mode === 'host' && requested.internal_port !== undefined) {
      throw new ServiceError('SERVERS_SERVER_FAILED_TO_CREATE', {
        error: `the port "${label}" has an internal_port, which the network mode host does not support; remove it`,
      });
    }
    const internal_port = requested.internal_port === undefined ? {} : { internal_port: requested.internal_port };
    return [label, { protocol: requested.protocol, routing: is_host ? 'host' : 'game_guard', ...internal_port }];
  });
  return Object.fromEntries(checked);
}

/** Refuses two ports with one variable, such as PORT_a_b of "a-b" and "a_b". The server could not know one of them. */
function refuseSharedVariables(labels: string[]): void {
  const by_name = new Map<string, string>();
  for (const label of labels) {
    const name = variableNameOf(label);
    const other = by_name.get(name);
    if (other !== undefined) {
      throw new ServiceError('SERVERS_SERVER_FAILED_TO_CREATE', {
        error: `the ports "${other}" and "${label}" share the variable PORT_${name}; rename one of them`,
      });
    }
    by_name.set(name, label);
  }
}

/** Returns the name of a port in variables, which have no dashes. Ports of versions have no underscores in their labels. */
const variableNameOf = (label: string): string => label.replaceAll('-', '_');

/** Protocols whose ports have a second number, at which Muster answers and relays to the server. */
export type RelayedProtocols = ReadonlySet<ServerPort['protocol']>;

const isRelayed = ({ protocol, routing }: ServerPort, relayed: RelayedProtocols): boolean =>
  routing === 'game_guard' && relayed.has(protocol);

/** Returns the ports of a server with a port of the machine for each that needs one, and a second for its relay. */
export function assignPorts(
  ports: Record<string, ServerPort>,
  free_ports: number[],
  relayed: RelayedProtocols,
): Record<string, ServerPort> {
  const left = [...free_ports];
  const assigned = Object.entries(ports).map(([label, port]): [string, ServerPort] => {
    if (port.port_range) return [label, port];
    const number = left.shift();
    const relay_port = isRelayed(port, relayed) ? left.shift() : undefined;
    assert(number !== undefined, 'a server that is taken has all its ports');
    assert(relay_port !== undefined || !isRelayed(port, relayed), 'a server that is taken has the ports of its relays');
    const requested = port.internal_port === undefined ? {} : { wanted_port: port.internal_port };
    const relay = relay_port === undefined ? {} : { relay_port };
    return [label, { ...port, ...requested, ...relay, internal_port: number, public_port: number }];
  });
  return Object.fromEntries(assigned);
}

/** Returns the ports of a server that has a network of its own: it listens on those that its developer asked for. */
export function portsInside(ports: Record<string, ServerPort>): Record<string, ServerPort> {
  return Object.fromEntries(
    Object.entries(ports).map(([label, port]): [string, ServerPort] => {
      const { wanted_port } = port;
      return [label, wanted_port === undefined ? port : { ...port, internal_port: wanted_port }];
    }),
  );
}

/** A server, and where players reach it. */
interface ServerAddress {
  server_id: string;
  host: string;
}

/** Returns the ports of a server, with the host where players reach them and their names behind the gateway. */
export function portsAt(
  { server_id, host }: ServerAddress,
  ports: Record<string, ServerPort>,
): Record<string, ServerPort> {
  return Object.fromEntries(
    Object.entries(ports).map(([label, port]): [string, ServerPort] => {
      const has_name = port.protocol === 'http' || port.protocol === 'https' || port.relay_port !== undefined;
      const name = has_name && port.routing === 'game_guard' ? toPortName({ server_id, label }) : undefined;
      return [label, { ...port, public_hostname: host, ...(name !== undefined && { gateway_name: name }) }];
    }),
  );
}

/** Counts the ports of the machine that the ports of a server need, with those of relays. */
export function countPorts(ports: Record<string, ServerPort>, relayed: RelayedProtocols): number {
  const single = Object.values(ports).filter(({ port_range }) => !port_range);
  return single.length + single.filter((port) => isRelayed(port, relayed)).length;
}

/** Maximum of ports that the ranges of one server may take from those that its machine gives to servers. */
export const RANGE_PORTS_MAX = 100;

/** Returns the numbers in the ranges of a server that are among those that its machine gives to servers. */
export function rangePortsOf(ports: Record<string, ServerPort>, range_ports: { min: number; max: number }): number[] {
  return Object.values(ports).flatMap(({ port_range }) =>
    port_range
      ? numbersIn({ min: Math.max(port_range.min, range_ports.min), max: Math.min(port_range.max, range_ports.max) })
      : [],
  );
}

/** Returns the numbers of a range, in order. */
export const numbersIn = ({ min, max }: { min: number; max: number }): number[] =>
  Array.from({ length: Math.max(0, max - min + 1) }, (_, index) => min + index);

/** Returns the numbers that a server has from its machine, with those of relays. */
export function assignedPortsOf(ports: Record<string, ServerPort>): number[] {
  return Object.values(ports).flatMap(({ public_port, relay_port }) =>
    [public_port, relay_port].filter((port) => port !== undefined),
  );
}

/**
 * Returns the variables with a server's ports: PORT_<label>, with underscores for dashes; PORT_<LABEL>, which the
 * reference API gives to servers without a lobby; and both spellings of ranges.
 */
export function portVariables(ports: Record<string, ServerPort>): Record<string, string> {
  const variables: Record<string, string> = {};
  // The exact spelling of a label wins over another label in capitals.
  const in_capitals: Record<string, string> = {};
  for (const [label, { internal_port, port_range }] of Object.entries(ports)) {
    const name = variableNameOf(label);
    if (port_range) {
      const { min, max } = port_range;
      Object.assign(variables, { [`PORT_RANGE_MIN_${name}`]: String(min), [`PORT_RANGE_MAX_${name}`]: String(max) });
      Object.assign(variables, { [`PORT_RANGE_${name}_MIN`]: String(min), [`PORT_RANGE_${name}_MAX`]: String(max) });
    } else {
      variables[`PORT_${name}`] = String(internal_port);
      in_capitals[`PORT_${name.toUpperCase()}`] = String(internal_port);
    }
  }
  return { ...in_capitals, ...variables };
}

/** Returns a sentence for each port that differs from the requested one, which says where to listen. */
export function describeMovedPorts(ports: Record<string, ServerPort>): string[] {
  return Object.entries(ports).flatMap(([label, { wanted_port, internal_port }]) =>
    wanted_port === undefined || wanted_port === internal_port
      ? []
      : [
          `port "${label}": listen on ${internal_port}, the value of PORT_${variableNameOf(label)}, not on ${wanted_port}, because all servers of a machine share its ports`,
        ],
  );
}
