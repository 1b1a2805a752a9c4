import { forEachAtOnce } from '../../../../platform/pacing.ts';
import { LOG_STREAMS } from '../../tables.ts';
import { createOutputFiles } from '../output/output-files.ts';
import type { Runtime, ServerHandle } from '../runtime.ts';
import { type EngineClient, EngineRefusal, EngineUnreachable } from './engine-client.ts';
import { EngineContainers } from './engine-containers.ts';
import { type EngineFacts, readEngineFacts } from './engine-facts.ts';
import { EngineFailures, type OnEngineFailure } from './engine-failures.ts';
import { openEngineFolders } from './engine-folders.ts';
import { openEngineImages } from './engine-images.ts';
import { EngineNetworks } from './engine-network.ts';
import { EngineStarts } from './engine-starts.ts';
import { EngineStates } from './engine-states.ts';
import { OutputCopies } from './output-copies.ts';

/** Time to copy the rest of the output of a container that has ended. */
const COPIED_WITHIN_MS = 5_000;
const CALLS_AT_ONCE_MAX = 8;
/** Kills at one time. Most of a kill that takes long is waiting for a container that does not end. */
const KILLS_AT_ONCE_MAX = 64;

export interface EngineRuntimeOptions {
  client: EngineClient;
  /** The directory with a folder for each container. */
  directory: string;
  /** The name or address at which players reach this machine. */
  host: string;
  /** The address at which servers reach the service. */
  api_url: string;
  /** Distinguishes the containers of this Muster from those of others. */
  node_id: string;
  has_read_only_root: boolean;
  /** Whether servers start only if nothing of their isolation is missing. */
  is_isolation_required: boolean;
  onFailed?: OnEngineFailure;
}

/** Opens the runtime that runs servers as containers of Docker or Podman, by the API of the engine. */
export function openEngineRuntime(options: EngineRuntimeOptions): Runtime {
  const { client, host, node_id } = options;
  const folders = openEngineFolders(options.directory);
  const { marks } = folders;
  const containers = new EngineContainers(client, node_id);
  const images = openEngineImages(client, node_id);
  const networks = new EngineNetworks({ client, node_id });
  const output_files = createOutputFiles({ are_copies: true });
  let facts: EngineFacts | undefined;
  let notify = () => {};
  const copies = new OutputCopies({
    folders,
    containers,
    output_files,
    onStopped: () => notify(),
    onFailed: (server_id, cause) => failures.reportOnce(server_id, 'collect', cause),
  });
  const states: EngineStates = new EngineStates({
    client,
    containers,
    folders,
    host,
    isStarting: (server_id) => starts.isUnderWay(server_id),
    follow: (server_id) => copies.follow(server_id),
    onChange: () => notify(),
  });

  const failures = new EngineFailures({ folders, states, onFailed: options.onFailed });
  const readFacts = async () => (facts ??= await readEngineFacts(client));
  const starts: EngineStarts = new EngineStarts({
    ...options,
    folders,
    containers,
    images,
    networks,
    states,
    copies,
    failures,
    readFacts,
    removeAll,
    onSettled: () => notify(),
  });

  /** Asks a container to end. Returns false if it cannot be asked yet. */
  async function stop({ server_id }: ServerHandle): Promise<boolean> {
    if (starts.isUnderWay(server_id)) return false;
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
    await starts.abort(server_id);
    if (!(await containers.find(server_id))?.is_running) return true;
    states.setKilled(server_id);
    failures.mark(server_id, 'killed', 'kill');
    try {
      await containers.signal(server_id, 'SIGKILL');
    } catch (error) {
      // It ended by itself.
      if (error instanceof EngineUnreachable || (await containers.find(server_id))?.is_running) throw error;
      states.clearKilled(server_id);
      await marks.clear(server_id, 'killed');
    }
    return await containers.waitForEnd(server_id);
  }

  /**
   * Kills a container. Returns whether it has ended. Refuses once if it was unreachable when it was observed last: the engine
   * may just be back, so it is observed again first. Only once, because a leftover is never observed.
   */
  async function killIfReachable(server_id: string): Promise<boolean> {
    if (states.takeUnreachable(server_id)) return false;
    return await killOne(server_id).catch((cause: unknown) => {
      if (!(cause instanceof EngineUnreachable)) failures.reportOnce(server_id, 'kill', cause);
      return false;
    });
  }

  async function removeAll(server_id: string): Promise<void> {
    await containers.remove(server_id);
    await copies.end(server_id);
    await folders.remove(server_id);
    for (const stream of LOG_STREAMS) output_files.forget(folders.output(server_id, stream));
    states.forget(server_id);
    failures.forget(server_id);
  }

  async function remove(server_id: string): Promise<void> {
    if (!folders.has(server_id)) return;
    await removeAll(server_id);
    await images.removeUnused();
    await networks.removeUnless(() => folders.list().length > 0);
  }

  /** Reads something of each server. What one server uses may be unknown. The others have their readings. */
  async function measureEach<Reading>(
    servers: readonly ServerHandle[],
    read: (server_id: string) => Promise<Reading | undefined>,
  ): Promise<Map<string, Reading>> {
    const readings = new Map<string, Reading>();
    const measurable = states.isAway() ? [] : servers.filter(({ server_id }) => folders.has(server_id));
    await forEachAtOnce(measurable, CALLS_AT_ONCE_MAX, async ({ server_id }) => {
      const reading = await read(server_id).catch((cause: unknown) => {
        if (!(cause instanceof EngineUnreachable)) failures.reportOnce(server_id, 'measure', cause);
        return undefined;
      });
      if (reading) readings.set(server_id, reading);
    });
    return readings;
  }

  // Known before the first start, if the engine runs already.
  readFacts().catch(() => {});

  return {
    kinds: ['docker_image', 'oci_bundle'],
    kinds_with_own_network: ['docker_image', 'oci_bundle'],
    host,
    get isolation() {
      return facts?.isolation;
    },
    start: (order) => starts.start(order),
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
    measureDisk: (servers) => measureEach(servers, (server_id) => containers.readDiskUse(server_id)),
    readUsage: (servers) => measureEach(servers, (server_id) => containers.readUsage(server_id)),
  };
}
