import { ServiceError } from '../../../../platform/errors.ts';
import { readDescriptorsMax } from '../../../../platform/http/open-connections.ts';
import { forEachAtOnce } from '../../../../platform/pacing.ts';
import { readUserProcessesMax } from '../../../../platform/processes.ts';
import { describeStartFailure } from '../../start-failure.ts';
import { LOG_STREAMS } from '../../tables.ts';
import { readImage } from '../container/image.ts';
import { exitStatusOf } from '../process/exit-status.ts';
import { assertIsolated } from '../process/isolation.ts';
import { createOutputFiles } from '../process/output-files.ts';
import {
  type DiskUse,
  type Observation,
  type Runtime,
  SETTING_UP,
  type ServerHandle,
  type Started,
  type StartOrder,
  UNKNOWN_END,
  type UsageReading,
} from '../runtime.ts';
import { type EngineClient, EngineRefusal, EngineUnreachable } from './engine-client.ts';
import { makeEngineContainer } from './engine-container.ts';
import { EngineContainers, isAbsence } from './engine-containers.ts';
import { type EngineFacts, readEngineFacts } from './engine-facts.ts';
import { type Mark, openEngineFolders } from './engine-folders.ts';
import { writeEngineIdentity } from './engine-identity.ts';
import { openEngineImages } from './engine-images.ts';
import { type ApiForward, EngineNetworks, forwardApi } from './engine-network.ts';
import { followOutput } from './output-follower.ts';

/** How long a launch waits for its container to start. Afterwards it is pending, for example while its image is fetched. */
const START_TIMEOUT_MS = 5_000;
/** How long an observation waits for the description of a container that has ended. */
const DESCRIBED_WITHIN_MS = 1_000;
/** Time to copy the rest of the output of a container that has ended. */
const COPIED_WITHIN_MS = 5_000;
/** Pause before the output of a container that still runs is copied again after that failed or ended. */
const COPY_AGAIN_AFTER_MS = 5_000;
const CALLS_AT_ONCE_MAX = 8;
/** Kills at one time. Most of a kill that takes long is waiting for a container that does not end. */
const KILLS_AT_ONCE_MAX = 64;
const MIB = 1_024 ** 2;
const ENGINE_AWAY = 'the container engine of the machine did not answer';
/** States of containers that have run, as Docker and Podman name them. */
const ENDED_STATES = new Set(['exited', 'dead', 'removing', 'stopped']);
/** States of containers that were never started. */
const CREATED_STATES = new Set(['created', 'configured', 'initialized']);
const INTERRUPTED = 'Muster restarted while its container was being set up';

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

/** The copying of a container's output. */
interface Following {
  /** Fulfilled when it has ended, or failed. */
  stopped: Promise<void>;
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
  const following = new Map<string, Following>();
  const known_ends = new Map<string, Observation>();
  /** Why containers could not be started. The mark of one may be missing, because the disk is full. */
  const failures = new Map<string, string>();
  /** Servers that this process killed. The mark of one may be missing, because the disk is full. */
  const killed = new Set<string>();
  /** The steps whose failure was reported, by server. */
  const reported = new Map<string, Set<EngineStep>>();
  let facts: EngineFacts | undefined;
  let forward: ApiForward | undefined;
  /** Since when the engine has not described the containers of servers. */
  const failing_since = new Map<string, Date>();
  /** Servers whose ended containers the engine is describing. */
  const describing = new Set<string>();
  /** Servers that were unreachable when they were observed last. */
  const unreachable = new Set<string>();
  /** The call that finds out whether an engine that did not answer does so again. */
  let probing: Promise<void> | undefined;
  let notify = () => {};

  const readFacts = async () => (facts ??= await readEngineFacts(client));
  const running = (server_id: string): Started => ({ is: 'running', identity: writeEngineIdentity(server_id), host });
  const pending = (server_id: string): Started => ({
    is: 'pending',
    identity: writeEngineIdentity(server_id),
    reason: SETTING_UP,
  });

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
    const seen = (await observeByEngine([{ server_id, identity: undefined }])).get(server_id);
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
    if (!is_late) return running(server_id);
    // The outcome of the start is observed later.
    launched
      // A set-up that a kill aborted is recorded without a reason: there is nothing to report.
      .catch((cause: unknown) =>
        abort.signal.aborted ? noteFailedSetUp(server_id, '') : recordFailure(server_id, cause),
      )
      .finally(() => notify());
    return pending(server_id);
  }

  /** Records that a container could not be set up, and why. */
  function noteFailedSetUp(server_id: string, reason: string): void {
    if (!folders.has(server_id)) return;
    failures.set(server_id, reason);
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
    follow(server_id);
  }

  /** Returns the way to the API for containers, which changes with their network. */
  function reachApiAt(gateway: string | undefined): ApiForward {
    if (forward && forward.gateway === gateway) return forward;
    forward?.close();
    forward = forwardApi(api_url, gateway);
    return forward;
  }

  /** Copies the output of a container, unless that is under way, or has stopped a moment ago. */
  function follow(server_id: string): Following {
    const known = following.get(server_id);
    if (known) return known;
    const abort = new AbortController();
    const one: Following = { abort, stopped: copyOutput(server_id, abort.signal) };
    following.set(server_id, one);
    one.stopped.then(() => {
      // It usually stops because the container has ended.
      notify();
      const stopFollowing = () => following.get(server_id) === one && following.delete(server_id);
      setTimeout(stopFollowing, COPY_AGAIN_AFTER_MS).unref();
    });
    return one;
  }

  /** Copies the output of a container until it ends. Never throws: a later observation of the server copies it again. */
  async function copyOutput(server_id: string, signal: AbortSignal): Promise<void> {
    try {
      await followOutput({
        files: { std_out: folders.output(server_id, 'std_out'), std_err: folders.output(server_id, 'std_err') },
        onWritten: (stream, reached) => output_files.noteReached(folders.output(server_id, stream), reached),
        positions: folders.positions(server_id),
        open: (since_seconds) => containers.openLog(server_id, since_seconds, signal),
      });
    } catch (cause) {
      const is_expected = signal.aborted || cause instanceof EngineUnreachable || isAbsence(cause);
      if (!is_expected) reportOnce(server_id, 'collect', cause);
    }
  }

  /** Copies what is left of the output of a container that has ended. A copy that began before may have broken off. */
  async function copyRest(server_id: string): Promise<void> {
    await following.get(server_id)?.stopped;
    following.delete(server_id);
    await follow(server_id).stopped;
  }

  /** Returns whether the engine does not answer, without asking it, and lets a call find out when it does again. */
  function isAway(): boolean {
    if (!client.unreachable_since) return false;
    if (probing) return true;
    probing = containers
      .list()
      .then(() => notify())
      .catch(() => {})
      .finally(() => {
        probing = undefined;
      });
    return true;
  }

  async function observe(servers: readonly ServerHandle[]): Promise<Map<string, Observation>> {
    const { unreachable_since: since } = client;
    // An engine that is known to hang must not hold up the servers of other runtimes.
    const observed = since && isAway() ? observeWithoutEngine(servers, since) : await observeByEngine(servers);
    for (const [server_id, { is }] of observed) {
      if (is === 'unreachable') unreachable.add(server_id);
      else unreachable.delete(server_id);
    }
    return observed;
  }

  const observeWithoutEngine = (servers: readonly ServerHandle[], since: Date): Map<string, Observation> =>
    new Map(servers.map(({ server_id }) => [server_id, observeFiles(server_id) ?? { is: 'unreachable', since }]));

  async function observeByEngine(servers: readonly ServerHandle[]): Promise<Map<string, Observation>> {
    const observed = new Map<string, Observation>();
    const unknown: ServerHandle[] = [];
    for (const server of servers) {
      const seen = observeFiles(server.server_id);
      if (seen) observed.set(server.server_id, seen);
      else unknown.push(server);
    }
    if (unknown.length === 0) return observed;
    try {
      const listed = await containers.list();
      await forEachAtOnce(unknown, CALLS_AT_ONCE_MAX, async (server) => {
        const { server_id } = server;
        const describe = () => observeListed(server, listed.get(server_id)).catch(() => undescribed(server_id));
        // An engine that begins to hang meanwhile must not be waited for by each server.
        observed.set(server_id, client.unreachable_since ? undescribed(server_id) : await describe());
      });
    } catch {
      // Servers of other runtimes must be observed, whatever is wrong with the engine.
      for (const { server_id } of unknown) observed.set(server_id, undescribed(server_id));
    }
    return observed;
  }

  /** Returns the state of a server whose container the engine does not describe. */
  function undescribed(server_id: string): Observation {
    const since = failing_since.get(server_id) ?? new Date();
    failing_since.set(server_id, since);
    return { is: 'unreachable', since: client.unreachable_since ?? since };
  }

  /** Returns the state of a server if it is known without the engine. */
  function observeFiles(server_id: string): Observation | undefined {
    if (starting.has(server_id)) return pending(server_id);
    if (!folders.has(server_id) || marks.read(server_id, 'waiting') !== undefined) return { is: 'absent' };
    const failure = failures.get(server_id) ?? marks.read(server_id, 'failed');
    if (failure === undefined) return known_ends.get(server_id);
    return { is: 'ended', exit_code: null, exit_signal: null, ...(failure !== '' && { reason: failure }) };
  }

  async function observeListed(server: ServerHandle, state: string | undefined): Promise<Observation> {
    const seen = await observeContainer(server, state);
    if (seen.is !== 'unreachable') failing_since.delete(server.server_id);
    return seen;
  }

  async function observeContainer(
    { server_id, identity }: ServerHandle,
    state: string | undefined,
  ): Promise<Observation> {
    if (state === undefined && marks.read(server_id, 'created') !== undefined) return UNKNOWN_END;
    if (state === undefined || CREATED_STATES.has(state)) {
      // A server without an identity is started anew. One with an identity was being set up by an earlier process.
      return identity === undefined ? { is: 'absent' } : { ...UNKNOWN_END, reason: INTERRUPTED, is_disruption: true };
    }
    follow(server_id);
    return ENDED_STATES.has(state) ? await awaitEnd(server_id) : running(server_id);
  }

  /**
   * Returns how a container ended. The engine may hang while it describes one container, so waits only briefly, and not for
   * one that was late before: its description is there for a later observation.
   */
  async function awaitEnd(server_id: string): Promise<Observation> {
    if (describing.has(server_id)) return undescribed(server_id);
    describing.add(server_id);
    const description = describeContainer(server_id).finally(() => describing.delete(server_id));
    const wait_ms = failing_since.has(server_id) ? 0 : DESCRIBED_WITHIN_MS;
    const end = await Promise.race([description, Bun.sleep(wait_ms)]);
    return end ?? undescribed(server_id);
  }

  async function describeContainer(server_id: string): Promise<Observation> {
    const container = await containers.find(server_id);
    if (container?.is_running) return running(server_id);
    const was_killed = killed.has(server_id) || marks.read(server_id, 'killed') !== undefined;
    const end = container && !was_killed ? endOf(container) : UNKNOWN_END;
    known_ends.set(server_id, end);
    return end;
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
    killed.add(server_id);
    mark(server_id, 'killed', 'kill');
    try {
      await containers.signal(server_id, 'SIGKILL');
    } catch (error) {
      // It ended by itself.
      if (error instanceof EngineUnreachable || (await containers.find(server_id))?.is_running) throw error;
      killed.delete(server_id);
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
    if (unreachable.delete(server_id)) return false;
    return await killOne(server_id).catch(() => false);
  }

  async function removeAll(server_id: string): Promise<void> {
    await containers.remove(server_id);
    const copying = following.get(server_id);
    copying?.abort.abort();
    await copying?.stopped;
    following.delete(server_id);
    await folders.remove(server_id);
    for (const stream of LOG_STREAMS) output_files.forget(folders.output(server_id, stream));
    for (const known of [known_ends, failures, killed, reported, failing_since, unreachable]) known.delete(server_id);
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
    observe,
    stop,
    async kill(servers, onGone) {
      const gone = new Set<string>();
      const is_away = isAway();
      const copies: Promise<void>[] = [];
      async function copyAndNote(server_id: string): Promise<void> {
        if (folders.has(server_id)) await Promise.race([copyRest(server_id), Bun.sleep(COPIED_WITHIN_MS)]);
        gone.add(server_id);
        onGone?.(server_id);
      }
      await forEachAtOnce(servers, KILLS_AT_ONCE_MAX, async ({ server_id }) => {
        const is_gone = !folders.has(server_id) || (!is_away && (await killIfReachable(server_id)));
        if (is_gone) copies.push(copyAndNote(server_id));
      });
      await Promise.all(copies);
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
      const known = isAway() ? [] : servers.filter(({ server_id }) => folders.has(server_id));
      await forEachAtOnce(known, CALLS_AT_ONCE_MAX, async ({ server_id }) => {
        const used = await containers.readDiskUse(server_id).catch(reportUnmeasured(server_id));
        if (used) measured.set(server_id, used);
      });
      return measured;
    },
    async readUsage(servers) {
      const used = new Map<string, UsageReading>();
      const known = isAway() ? [] : servers.filter(({ server_id }) => folders.has(server_id));
      await forEachAtOnce(known, CALLS_AT_ONCE_MAX, async ({ server_id }) => {
        const reading = await containers.readUsage(server_id).catch(reportUnmeasured(server_id));
        if (reading) used.set(server_id, reading);
      });
      return used;
    },
  };
}

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
