import { ServiceError } from '../../platform/errors.ts';
import type { Accepted, Observation, ServerHandle } from './runtimes/runtime.ts';
import { checkPorts } from './server-port-rules.ts';
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
  | { do: 'adopt'; accepted: Accepted }
  /** The server is pending for a reason that is not yet in its log. */
  | { do: 'report'; reason: string }
  | { do: 'stop' }
  | { do: 'kill' }
  | ({ do: 'finish' } & Pick<ServerRow, 'exit_code' | 'exit_signal' | 'failure' | 'has_lost_machine'>);

/** What this process remembers of a server. After a restart it is empty. */
export interface Remembered {
  /** Whether the server was asked to stop. */
  was_stop_requested: boolean;
  /** The last reported reason why it is pending. */
  reported: string | undefined;
}

/** Decides by the desired and the observed state. */
export function nextStep(
  server: Pick<ServerRow, 'identity' | 'started_at' | 'destroyed_at' | 'kill_at' | 'failure'>,
  observed: Observation,
  { now, was_stop_requested, reported }: Remembered & { now: Date },
): Step {
  const { identity, started_at, destroyed_at, kill_at, failure } = server;
  // A server that failed is ended without a timeout, also if its end was requested before.
  const is_overdue = destroyed_at !== null && (failure !== null || !kill_at || kill_at <= now);
  const ask: Step = was_stop_requested ? { do: 'wait' } : { do: 'stop' };
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
      if (!identity) return { do: 'adopt', accepted: observed };
      return reported === observed.reason ? { do: 'wait' } : { do: 'report', reason: observed.reason };
    case 'running':
      if (!identity || !started_at) return { do: 'adopt', accepted: observed };
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
  return checkPorts(network);
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
