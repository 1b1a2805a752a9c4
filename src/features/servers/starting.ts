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

/** Starts servers that this machine took. */
export function createStarting(dependencies: StartingDependencies) {
  const { database, clock, events, tokens, builds, runtime, logs, node } = dependencies;

  async function start(server: ServerRow): Promise<void> {
    const { server_id } = server;
    const process = await launch(server);
    if (!process) return;
    // When this fails it is adopted in the next step.
    await database.transact((tx) => store.setStarted(tx, server, { process, started_at: clock.now() }));
    const ports = Object.values(server.ports).flatMap(({ public_port }) => public_port ?? []);
    events.emit({ event: 'server_started', server_id, process_id: process.pid, ports });
    // A version's servers all have the same ports: their developer reads of PORT_<label> once, in the documentation.
    if (!server.token_caller) {
      for (const text of describeMovedPorts(server.ports)) {
        await logs.addLine({ server_id, stream: 'std_err' }, `[muster] ${text}`);
      }
    }
  }

  /** Its process; undefined when it cannot be started, which is noted. Throws what may be better the next time. */
  async function launch(server: ServerRow): Promise<ProcessIdentity | undefined> {
    const { server_id, game_id, user_id, ports } = server;
    try {
      // Whether it may run here was decided when it was created.
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

  /** What a server is told of itself and of us; the deprecated names are for servers of the field's early days. */
  async function ownVariables({ service_environment, token_caller }: ServerRow): Promise<Record<string, string>> {
    const own = { ...service_environment, API_ENDPOINT: node.api_url };
    if (!token_caller) return serviceVariables(own);
    const token = await tokens.issue(token_caller);
    const deprecated = { LOBBY_TOKEN: token, MATCHMAKER_API_URL: `${node.api_url}/v1` };
    return serviceVariables({ ...own, TOKEN: token, ...deprecated });
  }

  return {
    start,
    /** Notes the process of a server that was started while we could not note it. */
    async adopt(server: ServerRow, process: ProcessIdentity): Promise<void> {
      const started_at = server.started_at ?? clock.now();
      await database.transact((tx) => store.setStarted(tx, server, { process, started_at }));
      events.emit({ event: 'server_adopted', server_id: server.server_id, process_id: process.pid });
    },
  };
}

/** Why a server cannot run, for its developer; the whole of it, which may name our files, is for the log. */
function sentenceOf(error: unknown): string {
  const reason = error instanceof Error && 'code' in error ? ` (${error.code})` : '';
  return `the machine could not start it${reason}: tell whoever runs it`;
}
