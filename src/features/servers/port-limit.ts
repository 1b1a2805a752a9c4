import type { Loop } from '../../platform/loop.ts';
import { type EnforcingDependencies, type ForceEnd, startEnforcing } from './forced-ends.ts';
import { handleOf } from './rules.ts';
import type { Runtime } from './runtimes/runtime.ts';
import type { PlacedServer } from './tables.ts';

/** Short, because a server can take all local ports of the machine at once, without which no program connects anywhere. */
const EVERY_MS = 1_000;
const EVERY_MAX_MS = 5_000;

interface PortLimitDependencies extends EnforcingDependencies {
  findStrayPorts: NonNullable<Runtime['findStrayPorts']>;
}

/** Starts the loop that ends servers of this machine that listen on TCP ports that are not theirs. */
export function startLimitingPorts(dependencies: PortLimitDependencies, signal: AbortSignal): Loop {
  const { events, findStrayPorts } = dependencies;

  async function endStrays(servers: readonly PlacedServer[], forceEnd: ForceEnd): Promise<void> {
    const found = await findStrayPorts(servers.map((server) => ({ ...handleOf(server), ports: server.ports })));
    for (const server of servers) {
      const { server_id } = server;
      const port = found.get(server_id);
      if (port === undefined) continue;
      events.emit({ event: 'server_took_port', server_id, port });
      await forceEnd(server, describeStray(port));
    }
  }

  const rule = { every_ms: EVERY_MS, every_max_ms: EVERY_MAX_MS, enforce: endStrays };
  return startEnforcing(dependencies, { name: 'port-limit', ...rule }, signal);
}

const describeStray = (port: number): string =>
  `it listened on TCP port ${port}, which is not one of its ports: listen only on the ports in PORT_<label>`;
