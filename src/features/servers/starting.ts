import type { Clock } from '../../platform/clock.ts';
import type { Database } from '../../platform/database/database.ts';
import { toServiceError } from '../../platform/database/failures.ts';
import type { Events } from '../../platform/events.ts';
import type { ProcessIdentity } from '../../platform/processes.ts';
import type { Tokens } from '../../platform/tokens/tokens.ts';
import type { Builds } from '../builds/builds.ts';
import type { Logs } from './logs.ts';
import type { Node } from './placement.ts';
import { describeMovedPorts, portVariables, serviceVariables } from './rules.ts';
import type { Runtime } from './runtimes/runtime.ts';
import * as store from './store.ts';
import type { ServerRow } from './tables.ts';

interface StartingDependencies {
  database: Database;
  clock: Clock;
  events: Events;
  tokens: Tokens;
  builds: Pick<Builds, 'unpacked'>;
  runtime: Runtime;
  logs: Logs;
  node: Pick<Node, 'api_url'>;
}

/** Creates the steps that start servers of this machine. */
export function createStarting(dependencies: StartingDependencies) {
  const { database, clock, events, tokens, builds, runtime, logs, node } = dependencies;

  async function start(server: ServerRow): Promise<void> {
    const { server_id } = server;
    const process = await launch(server);
    if (!process) return;
    // If this fails, the next step adopts the process.
    await database.transact((tx) => store.setStarted(tx, server, { process, started_at: clock.now() }));
    const ports = Object.values(server.ports).flatMap(({ public_port }) => public_port ?? []);
    events.emit({ event: 'server_started', server_id, process_id: process.pid, ports });
    // All servers of a version have the same ports; their developer learns of PORT_<label> from the documentation.
    if (!server.token_caller) {
      for (const text of describeMovedPorts(server.ports)) {
        await logs.addLine({ server_id, stream: 'std_err' }, `[muster] ${text}`);
      }
    }
  }

  /**
   * Starts the process of a server. Returns undefined and records the reason if it can never start; throws what may
   * succeed later.
   */
  async function launch(server: ServerRow): Promise<ProcessIdentity | undefined> {
    const { server_id, game_id, user_id, ports } = server;
    try {
      // Creating the server has already checked that it may run here.
      const build = await builds.unpacked({ game_id }, server.build_id);
      return await runtime.start({
        server_id,
        build,
        arguments: server.arguments,
        environment: { ...server.environment, ...(await ownVariables(server)), ...portVariables(ports) },
        user_id: user_id ?? undefined,
      });
    } catch (cause) {
      const { status, message } = toServiceError(cause) ?? { status: 500, message: sentenceOf(cause) };
      if (status === 503) throw cause;
      events.emit({ event: 'server_step_failed', server_id, step: 'start', cause });
      await database.transact((tx) => store.setFailed(tx, server, message, clock.now()));
      return undefined;
    }
  }

  /**
   * Returns the variables about the server and the service. The deprecated names are for early servers of the reference
   * API.
   */
  async function ownVariables({ service_environment, token_caller }: ServerRow): Promise<Record<string, string>> {
    const own = { ...service_environment, API_ENDPOINT: node.api_url };
    if (!token_caller) return serviceVariables(own);
    const token = await tokens.issue(token_caller);
    const deprecated = { LOBBY_TOKEN: token, MATCHMAKER_API_URL: `${node.api_url}/v1` };
    return serviceVariables({ ...own, TOKEN: token, ...deprecated });
  }

  return {
    start,
    /** Records the process of a server that was started without a record. */
    async adopt(server: ServerRow, process: ProcessIdentity): Promise<void> {
      const started_at = server.started_at ?? clock.now();
      await database.transact((tx) => store.setStarted(tx, server, { process, started_at }));
      events.emit({ event: 'server_adopted', server_id: server.server_id, process_id: process.pid });
    },
  };
}

/**
 * Returns why a server cannot run, for its developer. The full error may name our files, so it only goes to the log.
 */
function sentenceOf(error: unknown): string {
  const reason = error instanceof Error && 'code' in error ? ` (${error.code})` : '';
  return `the machine could not start it${reason}: tell its operator`;
}
