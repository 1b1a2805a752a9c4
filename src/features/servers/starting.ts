import type { Clock } from '../../platform/clock.ts';
import type { Database } from '../../platform/database/database.ts';
import { toServiceError } from '../../platform/database/failures.ts';
import { assert } from '../../platform/errors.ts';
import type { Events } from '../../platform/events.ts';
import { isMissingObject } from '../../platform/objects/objects.ts';
import { isShortOfSpace } from '../../platform/system/disk-space.ts';
import { isOutOfResources } from '../../platform/system/system-errors.ts';
import type { Tokens } from '../../platform/tokens/tokens.ts';
import type { BuildKind, Builds } from '../builds/builds.ts';
import type { Logs } from './logs/logs.ts';
import type { PlacementMachine } from './placement/placement.ts';
import { serviceVariables } from './rules.ts';
import type { Accepted, Isolation, Runtime } from './runtimes/runtime.ts';
import { describeMovedPorts, portsAt, portsInside, portVariables } from './server-port-rules.ts';
import { describeStartFailure } from './start-failure.ts';
import * as store from './store.ts';
import type { PlacedServer, ServerProgram } from './tables.ts';

interface StartingDependencies {
  database: Database;
  clock: Clock;
  events: Events;
  tokens: Tokens;
  builds: Pick<Builds, 'kindOf' | 'ensureUnpacked'>;
  runtime: Runtime;
  logs: Logs;
  machine: Pick<PlacementMachine, 'api_url'>;
}

export type Starting = ReturnType<typeof createStarting>;

/** Creates the steps that start servers of this machine. */
export function createStarting(dependencies: StartingDependencies) {
  const { database, clock, events, tokens, builds, runtime, logs, machine } = dependencies;

  async function start(server: PlacedServer): Promise<boolean> {
    const accepted = await startByRuntime(server);
    // If this fails, the next step adopts the server.
    return accepted === undefined || (await record(server, accepted, 'server_started'));
  }

  /** Records that the runtime has accepted a server and, once it runs, where. Returns false if the server has ended. */
  async function record(
    server: PlacedServer,
    accepted: Accepted,
    event: 'server_started' | 'server_adopted',
  ): Promise<boolean> {
    const { server_id, game_id, build_id } = server;
    const { identity } = accepted;
    if (accepted.is === 'pending') return await store.setIdentity(database.queries, server_id, identity);
    const kind = await builds.kindOf({ game_id }, build_id);
    const ports = portsOf(server, kind);
    const running = {
      identity,
      started_at: server.started_at ?? clock.now(),
      ports: portsAt({ server_id, host: accepted.host }, ports),
    };
    if (!(await database.transact((tx) => store.setStarted(tx, server, running)))) return false;
    const public_ports = Object.values(ports).flatMap(({ public_port }) => public_port ?? []);
    const isolation = runtime.isolationOf?.(kind) ?? runtime.isolation;
    const level = isolation?.level ?? 'unknown';
    events.emit({ event, server_id, identity, host: accepted.host, ports: public_ports, isolation: level });
    if (!server.started_at)
      await reportStart(server, [...describePorts(server, ports), ...describeIsolation(isolation)]);
    return true;
  }

  /** Writes lines to the log of a server that has started. It runs, so a line that cannot be written is no failure of its start. */
  async function reportStart({ server_id }: PlacedServer, texts: string[]): Promise<void> {
    for (const text of texts) {
      try {
        await logs.addLine({ server_id, stream: 'std_err' }, `[muster] ${text}`);
      } catch (cause) {
        events.emit({ event: 'server_step_failed', server_id, step: 'report', cause });
      }
    }
  }

  /** Returns the ports of a server as its program sees them. */
  function portsOf({ ports }: PlacedServer, kind: BuildKind): PlacedServer['ports'] {
    return runtime.kinds_with_own_network?.includes(kind) ? portsInside(ports) : ports;
  }

  /**
   * Starts a server by its runtime. If it can never start, records the reason and returns undefined. Throws an error if it
   * may start later.
   */
  async function startByRuntime(server: PlacedServer): Promise<Accepted | undefined> {
    const { server_id, game_id, cpu, memory } = server;
    try {
      // The build was checked against the environment when the server was created.
      const build = await builds.ensureUnpacked({ game_id }, server.build_id);
      const ports = portsOf(server, build.kind);
      const program = await store.selectProgram(database.queries, server_id);
      assert(program, 'a server that is starting has a row');
      return await runtime.start({
        server_id,
        build_id: server.build_id,
        build,
        resources: { cpu, memory },
        ports,
        arguments: program.arguments,
        environment: {
          ...program.environment,
          ...(await ownVariables(server, program)),
          ...portVariables(ports),
          // Most language runtimes see the machine's memory, and would grow beyond the limit before they collect garbage.
          MUSTER_MEMORY_MB: String(memory),
        },
      });
    } catch (cause) {
      // It is tried again later.
      const is_unavailable = toServiceError(cause)?.status === 503 && !isMissingObject(cause);
      if (is_unavailable || isOutOfResources(cause) || isShortOfSpace(cause)) throw cause;
      events.emit({ event: 'server_step_failed', server_id, step: 'start', cause });
      await database.transact((tx) => store.setFailed(tx, server, describeStartFailure(cause), clock.now()));
      return undefined;
    }
  }

  /**
   * Returns the variables about the server and the service. The deprecated names are for early servers of the reference
   * API.
   */
  async function ownVariables(
    { token_caller }: PlacedServer,
    { service_environment }: ServerProgram,
  ): Promise<Record<string, string>> {
    const own = { ...service_environment, API_ENDPOINT: machine.api_url };
    if (!token_caller) return serviceVariables(own);
    const token = await tokens.issue(token_caller);
    const deprecated = { LOBBY_TOKEN: token, MATCHMAKER_API_URL: `${machine.api_url}/v1` };
    return serviceVariables({ ...own, TOKEN: token, ...deprecated });
  }

  return {
    /** Starts a server. Returns false if it has ended meanwhile, because its machine was declared lost. */
    start,
    /** Records a server that was started without a record, or that was pending. Returns false if it has ended. */
    adopt: (server: PlacedServer, accepted: Accepted): Promise<boolean> =>
      record(server, accepted, server.identity ? 'server_started' : 'server_adopted'),
    /** Reports to its developer why a server does not run yet. */
    report: ({ server_id }: PlacedServer, reason: string): Promise<void> =>
      logs.addLine({ server_id, stream: 'std_err' }, `[muster] this server does not run yet: ${reason}`),
  };
}

/**
 * Returns sentences for the developer of a server about ports that differ from the requested ones. There are none for lobbies:
 * all lobbies of a version have the same ports, which the documentation explains.
 */
function describePorts({ token_caller }: PlacedServer, ports: PlacedServer['ports']): string[] {
  return token_caller ? [] : describeMovedPorts(ports);
}

/** Returns a sentence for the developer of a server about what its machine does not enforce, if there is something. */
function describeIsolation(isolation: Isolation | undefined): string[] {
  if (isolation?.level !== 'partial') return [];
  return [`isolation is partial on this machine, without ${isolation.missing.join(', ')}`];
}
