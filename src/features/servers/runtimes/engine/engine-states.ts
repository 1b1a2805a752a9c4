import { forEachAtOnce } from '../../../../platform/pacing.ts';
import { MIB } from '../../../../platform/units.ts';
import { exitStatusOf } from '../linux/exit-status.ts';
import { type Accepted, type Observation, SETTING_UP, type ServerHandle, UNKNOWN_END } from '../runtime.ts';
import type { EngineClient } from './engine-client.ts';
import type { EngineContainers } from './engine-containers.ts';
import type { EngineFolders } from './engine-folders.ts';
import { writeEngineIdentity } from './engine-identity.ts';

/** How long an observation waits for the description of a container that has ended. */
const DESCRIBED_WITHIN_MS = 1_000;
const CALLS_AT_ONCE_MAX = 8;
/** States of containers that have run, as Docker and Podman name them. */
const ENDED_STATES = new Set(['exited', 'dead', 'removing', 'stopped']);
/** States of containers that were never started. */
const CREATED_STATES = new Set(['created', 'configured', 'initialized']);
const INTERRUPTED = 'Muster restarted while its container was being set up';

interface EngineStatesOptions {
  client: EngineClient;
  containers: EngineContainers;
  folders: EngineFolders;
  /** The name or address at which players reach this machine. */
  host: string;
  /** Returns whether a start of a server has not ended. */
  isStarting(server_id: string): boolean;
  /** Copies the output of a container. */
  follow(server_id: string): void;
  /** Called when the engine answers again. */
  onChange(): void;
}

/** The states of servers, by what the engine and the files of this machine say. */
export class EngineStates {
  readonly #known_ends = new Map<string, Observation>();
  /** Why containers could not be started. The mark of one may be missing, because the disk is full. */
  readonly #failures = new Map<string, string>();
  /** Servers that this process killed. The mark of one may be missing, because the disk is full. */
  readonly #killed = new Set<string>();
  /** Since when the engine has not described the containers of servers, in the time of `performance.now()`. */
  readonly #failing_since = new Map<string, number>();
  /** Servers whose ended containers the engine is describing. */
  readonly #describing = new Set<string>();
  /** Servers that were unreachable when they were observed last. */
  readonly #unreachable = new Set<string>();
  /** The call that finds out whether an engine that did not answer does so again. */
  #probing: Promise<void> | undefined;

  constructor(private readonly options: EngineStatesOptions) {}

  running(server_id: string): Accepted {
    return { is: 'running', identity: writeEngineIdentity(server_id), host: this.options.host };
  }

  pending(server_id: string): Accepted {
    return { is: 'pending', identity: writeEngineIdentity(server_id), reason: SETTING_UP };
  }

  /** Records why a container could not be started. */
  setFailure(server_id: string, reason: string): void {
    this.#failures.set(server_id, reason);
  }

  /** Records that Muster kills a container. */
  setKilled(server_id: string): void {
    this.#killed.add(server_id);
  }

  /** Records that a container which should be killed ended by itself. */
  clearKilled(server_id: string): void {
    this.#killed.delete(server_id);
  }

  /** Returns whether a server was unreachable when it was observed last, and forgets that. */
  takeUnreachable(server_id: string): boolean {
    return this.#unreachable.delete(server_id);
  }

  /** Forgets a server that is removed. */
  forget(server_id: string): void {
    for (const known of [this.#known_ends, this.#failures, this.#killed, this.#failing_since, this.#unreachable]) {
      known.delete(server_id);
    }
  }

  /** Returns whether the engine does not answer, without asking it, and lets a call find out when it does again. */
  isAway(): boolean {
    const { client, containers, onChange } = this.options;
    if (client.unreachable_since === undefined) return false;
    if (this.#probing) return true;
    this.#probing = containers
      .list()
      .then(onChange)
      .catch(() => {})
      .finally(() => {
        this.#probing = undefined;
      });
    return true;
  }

  /** Returns the state of each server, by id. */
  async observe(servers: readonly ServerHandle[]): Promise<Map<string, Observation>> {
    const { unreachable_since: since } = this.options.client;
    // An engine that is known to hang must not hold up the servers of other runtimes.
    const is_away = since !== undefined && this.isAway();
    const observed = is_away ? this.#observeWithoutEngine(servers, since) : await this.observeByEngine(servers);
    for (const [server_id, { is }] of observed) {
      if (is === 'unreachable') this.#unreachable.add(server_id);
      else this.#unreachable.delete(server_id);
    }
    return observed;
  }

  #observeWithoutEngine(servers: readonly ServerHandle[], since: number): Map<string, Observation> {
    return new Map(
      servers.map(({ server_id }) => [server_id, this.#observeFiles(server_id) ?? unreachableSince(since)]),
    );
  }

  /** Returns the state of each server, also if the engine did not answer last. */
  async observeByEngine(servers: readonly ServerHandle[]): Promise<Map<string, Observation>> {
    const { client, containers } = this.options;
    const observed = new Map<string, Observation>();
    const unknown: ServerHandle[] = [];
    for (const server of servers) {
      const seen = this.#observeFiles(server.server_id);
      if (seen) observed.set(server.server_id, seen);
      else unknown.push(server);
    }
    if (unknown.length === 0) return observed;
    try {
      const listed = await containers.list();
      await forEachAtOnce(unknown, CALLS_AT_ONCE_MAX, async (server) => {
        const { server_id } = server;
        const describe = () =>
          this.#observeListed(server, listed.get(server_id)).catch(() => this.#undescribed(server_id));
        // An engine that begins to hang meanwhile must not be waited for by each server.
        const is_away = client.unreachable_since !== undefined;
        observed.set(server_id, is_away ? this.#undescribed(server_id) : await describe());
      });
    } catch {
      // Servers of other runtimes must be observed, whatever is wrong with the engine.
      for (const { server_id } of unknown) observed.set(server_id, this.#undescribed(server_id));
    }
    return observed;
  }

  /** Returns the state of a server whose container the engine does not describe. */
  #undescribed(server_id: string): Observation {
    const since = this.#failing_since.get(server_id) ?? performance.now();
    this.#failing_since.set(server_id, since);
    return unreachableSince(this.options.client.unreachable_since ?? since);
  }

  /** Returns the state of a server if it is known without the engine. */
  #observeFiles(server_id: string): Observation | undefined {
    const { folders, isStarting } = this.options;
    const { marks } = folders;
    if (isStarting(server_id)) return this.pending(server_id);
    if (!folders.has(server_id) || marks.read(server_id, 'waiting') !== undefined) return { is: 'absent' };
    const failure = this.#failures.get(server_id) ?? marks.read(server_id, 'failed');
    if (failure === undefined) return this.#known_ends.get(server_id);
    return { is: 'ended', exit_code: null, exit_signal: null, ...(failure !== '' && { reason: failure }) };
  }

  async #observeListed(server: ServerHandle, state: string | undefined): Promise<Observation> {
    const seen = await this.#observeContainer(server, state);
    if (seen.is !== 'unreachable') this.#failing_since.delete(server.server_id);
    return seen;
  }

  async #observeContainer({ server_id, identity }: ServerHandle, state: string | undefined): Promise<Observation> {
    const { marks } = this.options.folders;
    if (state === undefined && marks.read(server_id, 'created') !== undefined) return UNKNOWN_END;
    if (state === undefined || CREATED_STATES.has(state)) {
      // A server without an identity is started anew. One with an identity was being set up by an earlier process.
      return identity === undefined ? { is: 'absent' } : { ...UNKNOWN_END, reason: INTERRUPTED, is_disruption: true };
    }
    this.options.follow(server_id);
    return ENDED_STATES.has(state) ? await this.#awaitEnd(server_id) : this.running(server_id);
  }

  /**
   * Returns how a container ended. The engine may hang while it describes one container, so waits only briefly, and not for
   * one that was late before: its description is there for a later observation.
   */
  async #awaitEnd(server_id: string): Promise<Observation> {
    if (this.#describing.has(server_id)) return this.#undescribed(server_id);
    this.#describing.add(server_id);
    const description = this.#describeContainer(server_id).finally(() => this.#describing.delete(server_id));
    const wait_ms = this.#failing_since.has(server_id) ? 0 : DESCRIBED_WITHIN_MS;
    const end = await Promise.race([description, Bun.sleep(wait_ms)]);
    return end ?? this.#undescribed(server_id);
  }

  async #describeContainer(server_id: string): Promise<Observation> {
    const { containers, folders } = this.options;
    const container = await containers.find(server_id);
    if (container?.is_running) return this.running(server_id);
    const was_killed = this.#killed.has(server_id) || folders.marks.read(server_id, 'killed') !== undefined;
    const end = container && !was_killed ? endOf(container) : UNKNOWN_END;
    this.#known_ends.set(server_id, end);
    return end;
  }
}

const unreachableSince = (since: number): Observation => ({ is: 'unreachable', for_ms: performance.now() - since });

/** Returns how a container ended. The engine's init reports 128 + n for a program that signal n ended. */
function endOf({
  exit_code,
  was_out_of_memory,
  memory_bytes,
}: {
  exit_code: number;
  was_out_of_memory: boolean;
  memory_bytes: number;
}): Observation {
  const status = exitStatusOf(exit_code);
  // When memory runs out, the kernel kills one process. Memory is the reason for the end only if that was the first
  // process.
  if (!was_out_of_memory || status.exit_signal !== 'SIGKILL') return { is: 'ended', ...status };
  return { is: 'ended', ...status, reason: `it exceeded its memory of ${memory_bytes / MIB} MiB` };
}
