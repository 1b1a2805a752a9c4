import { assert, ServiceError } from '../../platform/errors.ts';
import { toPortName } from '../port-names.ts';
import type { Observation, ServerHandle, Started } from './runtimes/runtime.ts';
import type { ServerPort, ServerRow } from './tables.ts';
import type { CreateServer } from './wire.ts';

/** Returns the facts by which a runtime finds a server. */
export function handleOf({ server_id, identity }: Pick<ServerRow, 'server_id' | 'identity'>): ServerHandle {
  return { server_id, identity: identity ?? undefined };
}

/** How long the machine of a server may be silent before the server is given up. */
const UNREACHABLE_MAX_MS = 60_000;

/** The next step for a server of this machine. */
export type Step =
  | { do: 'start' }
  | { do: 'wait' }
  /**
   * The server is pending without a recorded identity, or runs without a recorded start: it was pending before, or the
   * service was killed between starting and recording it.
   */
  | { do: 'adopt'; started: Started }
  /** The server is pending for a reason that is not yet in its log. */
  | { do: 'report'; reason: string }
  | { do: 'stop' }
  | { do: 'kill' }
  | ({ do: 'finish' } & Pick<ServerRow, 'exit_code' | 'exit_signal' | 'failure' | 'has_lost_machine'>);

/** What this process remembers of a server. After a restart it is empty. */
export interface Remembered {
  /** Whether the server was asked to stop. */
  was_asked: boolean;
  /** The last reported reason why it is pending. */
  reported: string | undefined;
}

/** Decides by the desired and the observed state. */
export function nextStep(
  server: Pick<ServerRow, 'identity' | 'started_at' | 'destroyed_at' | 'kill_at' | 'failure'>,
  observed: Observation,
  { now, was_asked, reported }: Remembered & { now: Date },
): Step {
  const { identity, started_at, destroyed_at, kill_at, failure } = server;
  // A server that failed is ended without a timeout, also if its end was requested before.
  const is_overdue = destroyed_at !== null && (failure !== null || !kill_at || kill_at <= now);
  const ask: Step = was_asked ? { do: 'wait' } : { do: 'stop' };
  switch (observed.is) {
    case 'absent': {
      if (!identity && !destroyed_at) return { do: 'start' };
      return { do: 'finish', ...describeUnseenEnd(server) };
    }
    case 'pending':
      if (is_overdue) return { do: 'kill' };
      if (destroyed_at && observed.can_stop) return ask;
      // It runs, but its runtime does not know where yet, for example after another process has taken it over.
      if (started_at) return { do: 'wait' };
      // A server that has not started has nothing to save.
      if (destroyed_at) return { do: 'kill' };
      if (!identity) return { do: 'adopt', started: observed };
      return reported === observed.reason ? { do: 'wait' } : { do: 'report', reason: observed.reason };
    case 'running':
      if (!identity || !started_at) return { do: 'adopt', started: observed };
      if (!destroyed_at) return { do: 'wait' };
      return is_overdue ? { do: 'kill' } : ask;
    case 'unreachable':
      return is_overdue || observed.for_ms >= UNREACHABLE_MAX_MS ? { do: 'kill' } : { do: 'wait' };
    case 'ended': {
      const { exit_code, exit_signal, is_disruption = false } = observed;
      const is_known = exit_code !== null || exit_signal !== null;
      // Its folder exists but perhaps no process: the service was killed in between.
      if (!identity && !is_known && !destroyed_at) return { do: 'start' };
      if (!is_known && observed.reason === undefined) return { do: 'finish', ...describeUnseenEnd(server) };
      // Killing the process group also kills the shim, which would report the exit.
      const was_killed = !is_known && kill_at !== null && kill_at <= now;
      // Muster ends a pod without a connection by deleting it, which looks as if others had disrupted it.
      const is_own_end = was_killed || (is_disruption && is_known && destroyed_at !== null);
      const reason = is_own_end ? null : (observed.reason ?? null);
      return {
        do: 'finish',
        exit_code,
        exit_signal: was_killed ? 'SIGKILL' : exit_signal,
        failure: failure ?? reason,
        has_lost_machine: is_disruption && !is_own_end && failure === null,
      };
    }
  }
}

/**
 * Returns the end of a server that was not observed to end. If its end was requested, it counts as killed, for instance by
 * a restart of its machine. Otherwise its process was lost, which is a crash.
 */
function describeUnseenEnd({
  started_at,
  destroyed_at,
  failure,
}: Pick<ServerRow, 'started_at' | 'destroyed_at' | 'failure'>) {
  const end = { exit_code: null, has_lost_machine: false };
  if (failure !== null) return { ...end, exit_signal: null, failure };
  if (destroyed_at === null) return { ...end, exit_signal: null, failure: LOST };
  return { ...end, exit_signal: started_at === null ? null : 'SIGKILL', failure: null };
}

const LOST = 'the process was lost: the machine restarted, or another program ended it';

/** The largest tier of the reference API. */
const RESOURCES_MAX = { cpu: 4_000, memory: 7_352 };

/** Returns the ports of a server to create, as stored. Throws an error that says what is wrong with the server. */
export function checkServer({ network, resources, lifecycle }: CreateServer): Record<string, ServerPort> {
  if (resources.cpu > RESOURCES_MAX.cpu || resources.memory > RESOURCES_MAX.memory) {
    const { cpu, memory } = RESOURCES_MAX;
    throw new ServiceError('SERVERS_SERVER_FAILED_TO_CREATE', {
      error: `its resources exceed the largest tier, cpu ${cpu} and memory ${memory}; request less`,
    });
  }
  if (lifecycle?.restarts_max !== undefined && lifecycle.restart !== 'on_crash') {
    throw new ServiceError('SERVERS_SERVER_FAILED_TO_CREATE', {
      error: 'lifecycle.restarts_max needs lifecycle.restart "on_crash": add the policy, or remove the maximum',
    });
  }
  refuseSharedVariables(Object.keys(network.ports));
  const ports = Object.entries(network.ports).map(([port, wanted]): [string, ServerPort] => {
    const routing = wanted.routing ?? { game_guard: {} };
    const is_host = 'host' in routing;
    if (is_host === 'game_guard' in routing) throw new ServiceError('SERVERS_MUST_SPECIFY_ROUTING_TYPE', { port });
    if (is_host && wanted.protocol !== 'tcp' && wanted.protocol !== 'udp') {
      throw new ServiceError('SERVERS_UNSUPPORTED_HOST_PROTOCOL', { port });
    }
    if (network.mode === 'host' && wanted.internal_port !== undefined) {
      throw new ServiceError('SERVERS_SERVER_FAILED_TO_CREATE', {
        error: `the port "${port}" has an internal_port, which the network mode host does not support; remove it`,
      });
    }
    const internal_port = wanted.internal_port === undefined ? {} : { internal_port: wanted.internal_port };
    return [port, { protocol: wanted.protocol, routing: is_host ? 'host' : 'game_guard', ...internal_port }];
  });
  return Object.fromEntries(ports);
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
    const wanted = port.internal_port === undefined ? {} : { wanted_port: port.internal_port };
    const relay = relay_port === undefined ? {} : { relay_port };
    return [label, { ...port, ...wanted, ...relay, internal_port: number, public_port: number }];
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

/** A server that runs. */
interface RunningServer {
  server_id: string;
  /** The host where players reach the server itself. */
  host: string;
}

/** Returns the ports of a running server, with the host where players reach it and their names behind the gateway. */
export function portsAt(
  { server_id, host }: RunningServer,
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
 * Returns the variables with a server's ports, as in the reference API: PORT_<label> with underscores for dashes, the
 * same with the label in capitals (which servers without a lobby get there), and both spellings of ranges.
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

/**
 * Returns each variable under both its SERVICE_ and its RIVET_ name, so that servers written for Rivet run unchanged.
 */
export function serviceVariables(values: Record<string, string>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(values).flatMap(([name, value]) => [
      [`SERVICE_${name}`, value],
      [`RIVET_${name}`, value],
    ]),
  );
}
