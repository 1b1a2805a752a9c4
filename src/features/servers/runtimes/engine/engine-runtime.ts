import { ServiceError } from '../../../../platform/errors.ts';
import { readDescriptorsMax } from '../../../../platform/http/ports/open-connections.ts';
import { forEachAtOnce } from '../../../../platform/pacing.ts';
import { readUserProcessesMax } from '../../../../platform/system/processes.ts';
import { describeStartFailure } from '../../start-failure.ts';
import { LOG_STREAMS } from '../../tables.ts';
import { readImage } from '../container/image.ts';
import { assertIsolated } from '../isolation.ts';
import { createOutputFiles } from '../output/output-files.ts';
import type { DiskUse, Runtime, ServerHandle, Started, StartOrder, UsageReading } from '../runtime.ts';
import { type EngineClient, EngineRefusal, EngineUnreachable } from './engine-client.ts';
import { makeEngineContainer } from './engine-container.ts';
import { EngineContainers } from './engine-containers.ts';
import { type EngineFacts, readEngineFacts } from './engine-facts.ts';
import { type Mark, openEngineFolders } from './engine-folders.ts';
import { openEngineImages } from './engine-images.ts';
import { type ApiForward, EngineNetworks, forwardApi } from './engine-network.ts';
import { EngineStates } from './engine-states.ts';
import { OutputCopies } from './output-copies.ts';

/** How long a launch waits for its container to start. Afterwards it is pending, for example while its image is fetched. */
const START_TIMEOUT_MS = 5_000;
/** Time to copy the rest of the output of a container that has ended. */
const COPIED_WITHIN_MS = 5_000;
const CALLS_AT_ONCE_MAX = 8;
/** Kills at one time. Most of a kill that takes long is waiting for a container that does not end. */
const KILLS_AT_ONCE_MAX = 64;
const ENGINE_AWAY = 'the container engine of the machine did not answer';

export interface EngineRuntimeOptions {
  client: EngineClient;
  /** The directory with a folder for each container. */
  directory: string;
  /** The name or address at which players reach this machine. */
  host: string;
  /** The address at which servers reach the service. */
  api_url: string;
  /** Distinguishes the containers of this Muster from those of others. */
  machine_id: string;
  has_read_only_root: boolean;
  /** Whether servers start only if nothing of their isolation is missing. */
  is_isolation_required: boolean;
  /**
   * Reports why something could not be done for a server, if that is not for its developer. Of each step but the start,
   * only the first failure of a server is reported.
   */
  onFailed?(server_id: string, step: EngineStep, cause: unknown): void;
}

type EngineStep = 'start' | 'collect' | 'measure' | 'kill';

/** A start that has not ended. */
interface Starting {
  settled: Promise<void>;
  abort: AbortController;
}

/** Opens the runtime that runs servers as containers of Docker or Podman, by the API of the engine. */
export function openEngineRuntime(options: EngineRuntimeOptions): Runtime {
  const { client, host, api_url, machine_id, has_read_only_root, is_isolation_required } = options;
  const folders = openEngineFolders(options.directory);
  const { marks } = folders;
  const containers = new EngineContainers(client, machine_id);
  const images = openEngineImages(client, machine_id);
  const networks = new EngineNetworks({ client, machine_id });
  const output_files = createOutputFiles({ are_copies: true });
  const limits = { open_files_max: readDescriptorsMax(), user_processes_max: readUserProcessesMax() };
  const starting = new Map<string, Starting>();
  /** The steps whose failure was reported, by server. */
  const reported = new Map<string, Set<EngineStep>>();
  let facts: EngineFacts | undefined;
  let forward: ApiForward | undefined;
  let notify = () => {};
  const copies = new OutputCopies({
    folders,
    containers,
    output_files,
    onStopped: () => notify(),
    onFailed: (server_id, cause) => reportOnce(server_id, 'collect', cause),
  });
  const states = new EngineStates({
    client,
    containers,
    folders,
    host,
    isStarting: (server_id) => starting.has(server_id),
    follow: (server_id) => copies.follow(server_id),
    onChange: () => notify(),
  });

  const readFacts = async () => (facts ??= await readEngineFacts(client));

  async function start(order: StartOrder): Promise<Started> {
    try {
      return await startOnce(order);
    } catch (cause) {
      if (!(cause instanceof EngineUnreachable)) throw cause;
      // Without its mark it is absent too, as soon as the engine answers.
      if (folders.has(order.server_id)) mark(order.server_id, 'waiting', 'start');
      throw new ServiceError('SERVERS_ENGINE_UNAVAILABLE', {}, { cause });
    }
  }

  async function startOnce(order: StartOrder): Promise<Started> {
    const { server_id } = order;
    const seen = (await states.observeByEngine([{ server_id, identity: undefined }])).get(server_id);
    if (seen?.is === 'running' || seen?.is === 'pending') return seen;
    if (folders.has(server_id)) await removeAll(server_id);
    folders.create(server_id);
    const abort = new AbortController();
    const launched = launch(order, abort.signal).finally(() => starting.delete(server_id));
    starting.set(server_id, { abort, settled: launched.catch(() => {}) });
    const is_late = await Promise.race([
      launched.then(() => false),
      Bun.sleep(START_TIMEOUT_MS).then(() => true),
    ]).catch((cause: unknown) => {
      if (!(cause instanceof EngineUnreachable)) noteFailedSetUp(server_id, '');
      throw cause;
    });
    if (!is_late) return states.running(server_id);
    // The outcome of the start is observed later.
    launched
      // A set-up that a kill aborted is recorded without a reason: there is nothing to report.
      .catch((cause: unknown) =>
        abort.signal.aborted ? noteFailedSetUp(server_id, '') : recordFailure(server_id, cause),
      )
      .finally(() => notify());
    return states.pending(server_id);
  }

  /** Records that a container could not be set up, and why. */
  function noteFailedSetUp(server_id: string, reason: string): void {
    if (!folders.has(server_id)) return;
    states.setFailure(server_id, reason);
    mark(server_id, 'failed', 'start', reason);
  }

  /** Marks a server. On a full disk the mark may fail, which must stop neither a start nor a kill. */
  function mark(server_id: string, name: Mark, step: EngineStep, text?: string): void {
    try {
      marks.set(server_id, name, text);
    } catch (cause) {
      reportOnce(server_id, step, cause);
    }
  }

  /** Reports the first failure of a step of a server. */
  function reportOnce(server_id: string, step: EngineStep, cause: unknown): void {
    const steps = reported.get(server_id) ?? new Set();
    reported.set(server_id, steps);
    if (steps.has(step)) return;
    steps.add(step);
    options.onFailed?.(server_id, step, cause);
  }

  function recordFailure(server_id: string, cause: unknown): void {
    if (!(cause instanceof ServiceError)) options.onFailed?.(server_id, 'start', cause);
    // The reason is for the developer, who must not learn where the engine or files of the machine are.
    noteFailedSetUp(server_id, cause instanceof EngineUnreachable ? ENGINE_AWAY : describeStartFailure(cause));
  }

  async function launch(order: StartOrder, signal: AbortSignal): Promise<void> {
    const { server_id } = order;
    const image = await readImage(order.build);
    const { is_podman, has_swap_limit, isolation } = await readFacts();
    if (is_isolation_required) assertIsolated(isolation);
    const image_id = await images.ensure(order.build, signal);
    const network = await networks.ensure({ is_podman });
    const api = reachApiAt(network.gateway);
    const environment = api.replaceAddress(order.environment);
    const body = makeEngineContainer({
      order: { ...order, environment },
      image,
      image_id,
      network: network.name,
      machine_id,
      has_read_only_root,
      has_swap_limit,
      is_podman,
      ...limits,
      seccomp_file: folders.seccomp(server_id),
    });
    await containers.create(server_id, body, signal);
    const has_started = new AbortController();
    const reaching_api = api.ready(AbortSignal.any([signal, has_started.signal]));
    // A failure is thrown below, once the engine has answered.
    reaching_api.catch(() => {});
    try {
      await containers.start(server_id, signal);
      mark(server_id, 'created', 'start');
    } finally {
      has_started.abort();
      await reaching_api;
    }
    copies.follow(server_id);
  }

  /** Returns the way to the API for containers, which changes with their network. */
  function reachApiAt(gateway: string | undefined): ApiForward {
    if (forward && forward.gateway === gateway) return forward;
    forward?.close();
    forward = forwardApi(api_url, gateway);
    return forward;
  }

  /** Asks a container to end. Returns false if it cannot be asked yet. */
  async function stop({ server_id }: ServerHandle): Promise<boolean> {
    if (starting.has(server_id)) return false;
    if (!folders.has(server_id)) return true;
    try {
      if (!(await containers.find(server_id))?.is_running) return true;
      if (!(await containers.hasProgram(server_id, await readFacts()))) return false;
      await containers.signal(server_id, 'SIGTERM');
      return true;
    } catch (error) {
      // It may have ended meanwhile, which the next call sees.
      if (error instanceof EngineRefusal || error instanceof EngineUnreachable) return false;
      throw error;
    }
  }

  /** Kills a container. Returns whether it has ended. */
  async function killOne(server_id: string): Promise<boolean> {
    const start = starting.get(server_id);
    start?.abort.abort();
    await start?.settled;
    if (!(await containers.find(server_id))?.is_running) return true;
    states.setKilled(server_id);
    mark(server_id, 'killed', 'kill');
    try {
      await containers.signal(server_id, 'SIGKILL');
    } catch (error) {
      // It ended by itself.
      if (error instanceof EngineUnreachable || (await containers.find(server_id))?.is_running) throw error;
      states.clearKilled(server_id);
      await marks.clear(server_id, 'killed');
    }
    await containers.waitForEnd(server_id);
    return true;
  }

  /**
   * Kills a container. Returns whether it has ended. Refuses once if it was unreachable when it was observed last: the engine
   * may just be back, so it is observed again first. Only once, because a leftover is never observed.
   */
  async function killIfReachable(server_id: string): Promise<boolean> {
    if (states.takeUnreachable(server_id)) return false;
    return await killOne(server_id).catch(() => false);
  }

  async function removeAll(server_id: string): Promise<void> {
    await containers.remove(server_id);
    await copies.end(server_id);
    await folders.remove(server_id);
    for (const stream of LOG_STREAMS) output_files.forget(folders.output(server_id, stream));
    states.forget(server_id);
    reported.delete(server_id);
  }

  async function remove(server_id: string): Promise<void> {
    if (!folders.has(server_id)) return;
    await removeAll(server_id);
    await images.removeUnused();
    await networks.removeUnless(() => folders.list().length > 0);
  }

  /** What one server uses may be unknown. The others have their readings. */
  const reportUnmeasured = (server_id: string) => (cause: unknown) => {
    if (!(cause instanceof EngineUnreachable)) reportOnce(server_id, 'measure', cause);
    return undefined;
  };

  // Known before the first start, if the engine runs already.
  readFacts().catch(() => {});

  return {
    kinds: ['docker_image', 'oci_bundle'],
    kinds_with_own_network: ['docker_image', 'oci_bundle'],
    host,
    get isolation() {
      return facts?.isolation;
    },
    start,
    observe: (servers) => states.observe(servers),
    stop,
    async kill(servers, onGone) {
      const gone = new Set<string>();
      const is_away = states.isAway();
      const last_copies: Promise<void>[] = [];
      async function copyAndNote(server_id: string): Promise<void> {
        if (folders.has(server_id)) await Promise.race([copies.finish(server_id), Bun.sleep(COPIED_WITHIN_MS)]);
        gone.add(server_id);
        onGone?.(server_id);
      }
      await forEachAtOnce(servers, KILLS_AT_ONCE_MAX, async ({ server_id }) => {
        const is_gone = !folders.has(server_id) || (!is_away && (await killIfReachable(server_id)));
        if (is_gone) last_copies.push(copyAndNote(server_id));
      });
      await Promise.all(last_copies);
      return gone;
    },
    readOutput: ({ server_id }, stream, query) => output_files.read(folders.output(server_id, stream), query),
    remove,
    list: async () => folders.list().map((server_id) => ({ server_id, identity: undefined })),
    onChange(listener) {
      notify = listener;
    },
    async measureDisk(servers) {
      const measured = new Map<string, DiskUse>();
      const known = states.isAway() ? [] : servers.filter(({ server_id }) => folders.has(server_id));
      await forEachAtOnce(known, CALLS_AT_ONCE_MAX, async ({ server_id }) => {
        const used = await containers.readDiskUse(server_id).catch(reportUnmeasured(server_id));
        if (used) measured.set(server_id, used);
      });
      return measured;
    },
    async readUsage(servers) {
      const used = new Map<string, UsageReading>();
      const known = states.isAway() ? [] : servers.filter(({ server_id }) => folders.has(server_id));
      await forEachAtOnce(known, CALLS_AT_ONCE_MAX, async ({ server_id }) => {
        const reading = await containers.readUsage(server_id).catch(reportUnmeasured(server_id));
        if (reading) used.set(server_id, reading);
      });
      return used;
    },
  };
}
