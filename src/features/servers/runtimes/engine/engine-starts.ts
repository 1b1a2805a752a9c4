import { ServiceError } from '../../../../platform/errors.ts';
import { readDescriptorsMax } from '../../../../platform/http/ports/open-connections.ts';
import { readUserProcessesMax } from '../../../../platform/system/processes.ts';
import { readImage } from '../container/image.ts';
import { refusePartialIsolation } from '../isolation.ts';
import type { Accepted, StartOrder } from '../runtime.ts';
import { EngineUnreachable } from './engine-client.ts';
import { makeEngineContainer } from './engine-container.ts';
import type { EngineContainers } from './engine-containers.ts';
import type { EngineFacts } from './engine-facts.ts';
import type { EngineFailures } from './engine-failures.ts';
import type { EngineFolders } from './engine-folders.ts';
import type { EngineImages } from './engine-images.ts';
import { type ApiForward, type EngineNetworks, forwardApi } from './engine-network.ts';
import type { EngineStates } from './engine-states.ts';
import type { OutputCopies } from './output-copies.ts';

/** How long a launch waits for its container to start. Afterwards it is pending, for example while its image is fetched. */
const START_TIMEOUT_MS = 5_000;

export interface EngineStartsDependencies {
  node_id: string;
  /** The address at which servers reach the service. */
  api_url: string;
  has_read_only_root: boolean;
  /** Whether servers start only if nothing of their isolation is missing. */
  is_isolation_required: boolean;
  folders: EngineFolders;
  containers: EngineContainers;
  images: EngineImages;
  networks: EngineNetworks;
  states: EngineStates;
  copies: OutputCopies;
  failures: EngineFailures;
  readFacts(): Promise<EngineFacts>;
  /** Removes all that is left of a server. */
  removeAll(server_id: string): Promise<void>;
  /** Called when a start that took long has ended. */
  onSettled(): void;
}

/** A start that has not ended. */
interface Starting {
  settled: Promise<void>;
  abort: AbortController;
}

/** The starts of containers. */
export class EngineStarts {
  readonly #starting = new Map<string, Starting>();
  readonly #limits = { open_files_max: readDescriptorsMax(), user_processes_max: readUserProcessesMax() };
  #forward: ApiForward | undefined;

  constructor(private readonly dependencies: EngineStartsDependencies) {}

  isUnderWay(server_id: string): boolean {
    return this.#starting.has(server_id);
  }

  /** Ends a start that is under way. */
  async abort(server_id: string): Promise<void> {
    const start = this.#starting.get(server_id);
    start?.abort.abort();
    await start?.settled;
  }

  async start(order: StartOrder): Promise<Accepted> {
    const { folders, failures } = this.dependencies;
    try {
      return await this.#startOnce(order);
    } catch (cause) {
      if (!(cause instanceof EngineUnreachable)) throw cause;
      // Without its mark it is absent too, as soon as the engine answers.
      if (folders.has(order.server_id)) failures.mark(order.server_id, 'waiting', 'start');
      throw new ServiceError('SERVERS_ENGINE_UNAVAILABLE', {}, { cause });
    }
  }

  async #startOnce(order: StartOrder): Promise<Accepted> {
    const { folders, states, failures, removeAll, onSettled } = this.dependencies;
    const { server_id } = order;
    const observed = (await states.observeByEngine([{ server_id, identity: undefined }])).get(server_id);
    if (observed?.is === 'running' || observed?.is === 'pending') return observed;
    if (folders.has(server_id)) await removeAll(server_id);
    folders.create(server_id);
    const abort = new AbortController();
    const launched = this.#launch(order, abort.signal).finally(() => this.#starting.delete(server_id));
    this.#starting.set(server_id, { abort, settled: launched.catch(() => {}) });
    const is_late = await Promise.race([
      launched.then(() => false),
      Bun.sleep(START_TIMEOUT_MS).then(() => true),
    ]).catch((cause: unknown) => {
      if (!(cause instanceof EngineUnreachable)) failures.noteFailedSetUp(server_id, '');
      throw cause;
    });
    if (!is_late) return states.running(server_id);
    // The outcome of the start is observed later.
    launched
      // A set-up that a kill aborted is recorded without a reason: there is nothing to report.
      .catch((cause: unknown) =>
        abort.signal.aborted ? failures.noteFailedSetUp(server_id, '') : failures.recordFailedStart(server_id, cause),
      )
      .finally(onSettled);
    return states.pending(server_id);
  }

  async #launch(order: StartOrder, signal: AbortSignal): Promise<void> {
    const { folders, containers, images, networks, copies, failures } = this.dependencies;
    const { node_id, has_read_only_root, is_isolation_required } = this.dependencies;
    const { server_id } = order;
    const image = await readImage(order.build);
    const { is_podman, has_swap_limit, isolation } = await this.dependencies.readFacts();
    if (is_isolation_required) refusePartialIsolation(isolation);
    const image_id = await images.ensure(order.build, signal);
    const network = await networks.ensure({ is_podman });
    const api = this.#reachApiAt(network.gateway);
    const environment = api.replaceAddress(order.environment);
    const body = makeEngineContainer({
      order: { ...order, environment },
      image,
      image_id,
      network: network.name,
      node_id,
      has_read_only_root,
      has_swap_limit,
      is_podman,
      ...this.#limits,
      seccomp_file: folders.seccomp(server_id),
    });
    await containers.create(server_id, body, signal);
    const has_started = new AbortController();
    const reaching_api = api.ready(AbortSignal.any([signal, has_started.signal]));
    // A failure is thrown below, once the engine has answered.
    reaching_api.catch(() => {});
    try {
      await containers.start(server_id, signal);
      failures.mark(server_id, 'created', 'start');
    } finally {
      has_started.abort();
      await reaching_api;
    }
    copies.follow(server_id);
  }

  /** Returns the way to the API for containers, which changes with their network. */
  #reachApiAt(gateway: string | undefined): ApiForward {
    if (this.#forward && this.#forward.gateway === gateway) return this.#forward;
    this.#forward?.close();
    this.#forward = forwardApi(this.dependencies.api_url, gateway);
    return this.#forward;
  }
}
