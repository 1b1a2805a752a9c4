import { ServiceError } from '../../platform/errors.ts';
import type { Events } from '../../platform/events.ts';
import { type Loop, startLoop } from '../../platform/loop.ts';
import { toUrlHost } from '../../platform/networks.ts';
import { type Feed, wakeOnChange } from '../../platform/watch/feed.ts';
import type { Lobbies } from '../lobbies/lobbies.ts';
import type { Machines } from '../machines/machines.ts';
import type { Servers } from '../servers/servers.ts';
import { topics } from '../topics.ts';
import { hostOf } from './server-host.ts';

/** Intervals: while a server starts, while one waits for a machine, and otherwise. */
const EVERY_MS_WHILE = { starting: 50, waiting: 250, none: 5_000 };
const PROBE_WITHIN_MS = 1_000;
/** Servers that are probed at one time. */
const PROBES_AT_ONCE_MAX = 64;

export interface ReadinessDependencies {
  events: Events;
  subscribe: Feed['subscribe'];
  lobbies: Pick<Lobbies, 'unreadyOn' | 'ready'>;
  servers: Pick<Servers, 'withPresence'>;
  machines: Pick<Machines, 'heldIds'>;
  node_id: string;
  datacenter_id: string;
}

/**
 * Starts the loop that reports lobbies ready whose game server does not: as soon as the server answers at a port with
 * `presence: gateway`.
 */
export function startReportingReady(
  dependencies: ReadinessDependencies,
  signal: AbortSignal,
  probe_within_ms = PROBE_WITHIN_MS,
): Loop {
  const { events, subscribe, lobbies, servers, machines, node_id, datacenter_id } = dependencies;
  let awaited: keyof typeof EVERY_MS_WHILE = 'none';
  const probes = new Probes({ signal, within_ms: probe_within_ms, report: (lobby_id) => lobbies.ready({ lobby_id }) });
  const loop = startLoop({
    name: 'gateway-readiness',
    every_ms: () => EVERY_MS_WHILE[awaited],
    signal,
    events,
    async step() {
      const with_presence = await servers.withPresence({ node_ids: machines.heldIds(), datacenter_id });
      const address_by_server = new Map(
        with_presence.flatMap((server) => {
          // Pods of a cluster are on other machines.
          const host = hostOf(server, node_id);
          const { server_id, port } = server;
          return port && host !== undefined ? [[server_id, `${toUrlHost(host)}:${port}`] as const] : [];
        }),
      );
      const server_ids = [...address_by_server.keys()];
      const unready = server_ids.length === 0 ? [] : await lobbies.unreadyOn(server_ids);
      const addresses = new Map(
        unready.flatMap(({ lobby_id, server_id }) => {
          const address = address_by_server.get(server_id);
          return address === undefined ? [] : [[lobby_id, address] as const];
        }),
      );
      awaited = addresses.size > 0 ? 'starting' : with_presence.length > server_ids.length ? 'waiting' : 'none';
      probes.begin(addresses);
      const failures = probes.takeFailures();
      if (failures.length > 0) throw new AggregateError(failures, 'lobbies could not be reported ready');
      return 0;
    },
  });
  wakeOnChange(loop, { feed: { subscribe }, topics: [topics.work(datacenter_id)], signal });
  return { ...loop, stopped: loop.stopped.then(() => probes.ended()) };
}

interface ProbesOptions {
  /** Ends all probes. */
  signal: AbortSignal;
  /** Time for a server to answer a probe. */
  within_ms: number;
  /** Reports that a lobby is ready. It is called once its server has answered. */
  report(lobby_id: string): Promise<void>;
}

interface Probe {
  /** In the time of `performance.now()`. */
  begun_at: number;
  state: 'under_way' | 'failed' | 'reported';
}

/** Probes whether the servers of lobbies answer http. A probe delays no other one, because a server may be silent. */
class Probes {
  readonly #options: ProbesOptions;
  /** The last probe of each lobby. */
  readonly #of_lobbies = new Map<string, Probe>();
  readonly #under_way = new Set<Promise<void>>();
  #failures: unknown[] = [];

  constructor(options: ProbesOptions) {
    this.#options = options;
  }

  /** Begins to probe the servers at these addresses, by lobby, and forgets all other lobbies. */
  begin(addresses: ReadonlyMap<string, string>): void {
    for (const lobby_id of this.#of_lobbies.keys()) {
      if (!addresses.has(lobby_id)) this.#of_lobbies.delete(lobby_id);
    }
    const begunAt = (lobby_id: string) => this.#of_lobbies.get(lobby_id)?.begun_at ?? 0;
    // The lobby that was probed longest ago comes first, so that many silent servers leave room for the others.
    const waiting = [...addresses]
      .filter(([lobby_id]) => (this.#of_lobbies.get(lobby_id)?.state ?? 'failed') === 'failed')
      .toSorted(([one], [other]) => begunAt(one) - begunAt(other));
    for (const [lobby_id, address] of waiting.slice(0, PROBES_AT_ONCE_MAX - this.#under_way.size)) {
      const ended = this.#perform(lobby_id, address).finally(() => this.#under_way.delete(ended));
      this.#under_way.add(ended);
    }
  }

  /** Returns why lobbies could not be reported since the last call. */
  takeFailures(): unknown[] {
    const failures = this.#failures;
    this.#failures = [];
    return failures;
  }

  /** Resolves once all probes have ended. */
  async ended(): Promise<void> {
    await Promise.all(this.#under_way);
  }

  async #perform(lobby_id: string, address: string): Promise<void> {
    const { signal, within_ms, report } = this.#options;
    const probe: Probe = { begun_at: performance.now(), state: 'under_way' };
    this.#of_lobbies.set(lobby_id, probe);
    try {
      const has_answered = await answers(address, AbortSignal.any([signal, AbortSignal.timeout(within_ms)]));
      if (has_answered) await report(lobby_id);
      probe.state = has_answered ? 'reported' : 'failed';
    } catch (failure) {
      probe.state = 'failed';
      if (!hasLobbyEnded(failure)) this.#failures.push(failure);
    }
  }
}

/** Returns whether a lobby could not be reported because it has ended meanwhile. */
function hasLobbyEnded(failure: unknown): boolean {
  return failure instanceof ServiceError && failure.code === 'MATCHMAKER_LOBBY_STOPPED';
}

/**
 * Returns whether a server answers http at an address. A connection proves nothing: a container's proxy accepts any.
 */
async function answers(address: string, signal: AbortSignal): Promise<boolean> {
  try {
    const probe = { method: 'HEAD', redirect: 'manual', signal } as const;
    await (await fetch(`http://${address}/`, probe)).body?.cancel();
    return true;
  } catch {
    return false;
  }
}
