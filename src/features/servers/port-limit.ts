import type { Events } from '../../platform/events.ts';
import { type Loop, startLoop } from '../../platform/loop.ts';
import { createForcedEnds, type ForcedEndDependencies } from './forced-ends.ts';
import { handleOf } from './rules.ts';
import type { Runtime } from './runtimes/runtime.ts';
import type { PlacedServer } from './tables.ts';

/** Short, because a server can take all local ports of the machine at once, without which no program connects anywhere. */
const EVERY_MS = 1_000;
/** The largest share of time that is spent on searching, unless passes would be more than five seconds apart. */
const SHARE_MAX = 1 / 50;
const EVERY_MAX_MS = 5_000;

interface PortLimitDependencies extends ForcedEndDependencies {
  events: Events;
  findStrayPorts: NonNullable<Runtime['findStrayPorts']>;
  /** Returns this machine's servers. */
  listServers(): readonly PlacedServer[];
}

/** Starts the loop that ends servers of this machine that listen on TCP ports that are not theirs. */
export function startLimitingPorts(dependencies: PortLimitDependencies, signal: AbortSignal): Loop {
  const { events, findStrayPorts, listServers } = dependencies;
  const forceEnd = createForcedEnds(dependencies);
  let took_ms = 0;

  async function endStrays(servers: readonly PlacedServer[]): Promise<void> {
    const found = await findStrayPorts(servers.map((server) => ({ ...handleOf(server), ports: server.ports })));
    for (const server of servers) {
      const { server_id } = server;
      const port = found.get(server_id);
      if (port === undefined) continue;
      events.emit({ event: 'server_took_port', server_id, port });
      await forceEnd(server, describeStray(port));
    }
  }

  return startLoop({
    name: 'port-limit',
    every_ms: () => Math.min(EVERY_MAX_MS, Math.max(EVERY_MS, took_ms / SHARE_MAX)),
    signal,
    events,
    async step() {
      const started = performance.now();
      // A server that has failed is ending for another reason already.
      const running = listServers().filter(({ identity, failure }) => identity !== null && failure === null);
      if (running.length > 0) await endStrays(running);
      took_ms = performance.now() - started;
      return 0;
    },
  });
}

const describeStray = (port: number): string =>
  `it listened on TCP port ${port}, which is not one of its ports: listen only on the ports in PORT_<label>`;
