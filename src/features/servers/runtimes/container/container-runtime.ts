import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { forEachAtOnce, pace } from '../../../../platform/pacing.ts';
import { removeFolder } from '../../../../platform/system/folder-removal.ts';
import {
  identifyProcess,
  isRunning,
  readChildren,
  readStat,
  sessionOf,
  signalProcess,
} from '../../../../platform/system/processes.ts';
import { LOG_STREAMS, type LogStream } from '../../tables.ts';
import { measureDisk } from '../disk-use.ts';
import { killServers } from '../linux/killing.ts';
import { createProcessTrees, type ProcessServer } from '../linux/process-trees.ts';
import { createOutputFiles, pieceAt } from '../output/output-files.ts';
import type {
  Accepted,
  DiskUse,
  Observation,
  OutputPiece,
  OutputQuery,
  Runtime,
  ServerHandle,
  StartOrder,
} from '../runtime.ts';
import { listCgroupProcesses, readContainerUsage, removeCgroups } from './container-cgroups.ts';
import { openContainerFolders } from './container-folders.ts';
import { readContainerIdentity } from './container-identity.ts';
import { createContainerLaunching } from './container-launching.ts';
import { planNetwork } from './container-network.ts';
import type { ContainerPrograms } from './container-programs.ts';
import { ContainerStates } from './container-states.ts';
import { readTraffic } from './container-traffic.ts';

/** How long a launch waits for its container to start. Afterwards it is pending, for example while its files are copied. */
const START_TIMEOUT_MS = 5_000;
const START_POLL_MS = 5;
/** Sweeps for processes to kill. Killed ones are listed until the kernel has finished their end. */
const SWEEPS_MAX = 40;
const SWEEP_PAUSE_MS = 25;
const KILLS_AT_ONCE_MAX = 8;

export interface ContainerRuntimeOptions {
  programs: ContainerPrograms;
  /** The directory with a folder for each container. */
  directory: string;
  /** The name or address at which players reach this machine. */
  host: string;
  /** The address at which servers reach the service. */
  api_url: string;
  has_read_only_root: boolean;
  /** Reports why a container could not be set up, once, if that took longer than its start. */
  onStartFailed?(server_id: string, cause: unknown): void;
}

/**
 * Opens the runtime that runs servers in containers, by an OCI runtime of this machine and without a daemon. A shim runs
 * each container and records its exit status, so that the container continues when the service stops.
 */
export function openContainerRuntime(options: ContainerRuntimeOptions): Runtime {
  const { programs, host, api_url, has_read_only_root } = options;
  const folders = openContainerFolders(options.directory);
  const readTrees = createProcessTrees();
  const output_files = createOutputFiles();
  const states = new ContainerStates({ folders, host, onStartFailed: options.onStartFailed });
  const launch = createContainerLaunching({ programs, folders, has_read_only_root });
  let notify = () => {};

  const locate = ({ server_id, identity }: ServerHandle): ProcessServer => ({
    server_id,
    process: readContainerIdentity(identity),
    user_id: undefined,
  });
  async function observe(servers: readonly ServerHandle[]): Promise<Map<string, Observation>> {
    const observed = new Map<string, Observation>();
    const unrecorded: ProcessServer[] = [];
    for (const server of servers) {
      const { server_id } = server;
      const { process: shim } = locate(server);
      if (shim) observed.set(server_id, isRunning(shim) ? states.stateOf(server_id, shim) : states.endOf(server_id));
      else if (!existsSync(folders.exit(server_id))) observed.set(server_id, { is: 'absent' });
      else unrecorded.push(locate(server));
      await pace();
    }
    for (const [server_id, tree] of await readTrees(unrecorded)) {
      const leader = tree.find(({ pid, session }) => session === pid);
      const shim = leader && identifyProcess(leader.pid);
      observed.set(server_id, shim ? states.stateOf(server_id, shim) : states.endOf(server_id));
    }
    return observed;
  }

  async function start(order: StartOrder): Promise<Accepted> {
    const { server_id } = order;
    const seen = (await observe([{ server_id, identity: undefined }])).get(server_id);
    if (seen?.is === 'running' || seen?.is === 'pending') return seen;
    const network = planNetwork(order.ports, api_url);
    // An unfinished start may have left something.
    await killGroup(server_id);
    await removeAll(server_id);
    const shim = await launch({ order, network, onExit: () => notify() });
    const deadline = performance.now() + START_TIMEOUT_MS;
    while (states.readFirstPid(server_id) === undefined && isRunning(shim) && performance.now() < deadline) {
      await Bun.sleep(START_POLL_MS);
    }
    if (states.readFirstPid(server_id) !== undefined || isRunning(shim)) return states.stateOf(server_id, shim);
    states.noteReported(server_id);
    throw states.setUpFailureOf(server_id);
  }

  /** Returns whether a process belongs to a container: it is in its control group, or is its first process. */
  function isInside(pid: number, { server_id, process: shim }: ProcessServer): boolean {
    if (listCgroupProcesses(server_id).includes(pid)) return true;
    const parent = readStat(pid)?.parent;
    return shim !== undefined && parent !== undefined && sessionOf(parent) === shim.pid;
  }

  /** Kills the processes of a container's control group. Returns whether none is left. */
  async function killGroup(server_id: string): Promise<boolean> {
    for (let sweep = 0; sweep < SWEEPS_MAX; sweep += 1) {
      const pids = listCgroupProcesses(server_id);
      if (pids.length === 0) return true;
      for (const pid of pids) signalProcess(pid, 'SIGKILL');
      await Bun.sleep(SWEEP_PAUSE_MS);
    }
    return false;
  }

  async function removeAll(server_id: string): Promise<void> {
    await removeCgroups(server_id);
    await removeFolder(folders.folderOf(server_id));
    for (const stream of LOG_STREAMS) output_files.forget(folders.output(server_id, stream));
    states.forget(server_id);
  }

  /** Reads the output of a container. Until its program runs, the OCI runtime writes there, with files of the machine. */
  async function readOutput({ server_id }: ServerHandle, stream: LogStream, query: OutputQuery): Promise<OutputPiece> {
    if (states.readFirstPid(server_id) !== undefined)
      return await output_files.read(folders.output(server_id, stream), query);
    return pieceAt(Number(query.from ?? 0));
  }

  const outputsOf = (server_id: string) => LOG_STREAMS.map((stream) => folders.output(server_id, stream));

  return {
    kinds: ['docker_image', 'oci_bundle'],
    kinds_with_own_network: ['docker_image', 'oci_bundle'],
    host,
    isolation: { level: 'full', missing: [] },
    start,
    observe,
    async stop(server) {
      const { server_id } = server;
      const { process: shim } = locate(server);
      if (!shim || !isRunning(shim)) return true;
      const first_pid = states.readFirstPid(server_id);
      // Until it has a child, the first process ignores signals.
      if (first_pid === undefined || readChildren(first_pid)?.length === 0) return false;
      if (isInside(first_pid, locate(server))) signalProcess(first_pid, 'SIGTERM');
      return true;
    },
    async kill(servers, onGone) {
      // The shims first, so that none records the status of a killed container.
      const without_shim = await killServers(servers.map(locate), { readTrees });
      const gone = new Set<string>();
      await forEachAtOnce([...without_shim], KILLS_AT_ONCE_MAX, async (server_id) => {
        if (!(await killGroup(server_id))) return;
        gone.add(server_id);
        onGone?.(server_id);
      });
      return gone;
    },
    readOutput,
    remove: removeAll,
    list: async () => folders.list().map((server_id) => ({ server_id, identity: undefined })),
    onChange(listener) {
      notify = listener;
    },
    async measureDisk(servers, limit) {
      const measured = new Map<string, DiskUse>();
      for (const { server_id } of servers.filter((server) => existsSync(folders.exit(server.server_id)))) {
        const folder = folders.folderOf(server_id);
        const pids = listCgroupProcesses(server_id);
        const upper = await measureDisk({ folder: join(folder, 'upper'), pids }, limit);
        // Where no overlay could be mounted, the container has a copy of its image, which counts too.
        const copy = await measureDisk({ folder: join(folder, 'rootfs'), pids: [] }, limit);
        measured.set(server_id, {
          bytes: upper.bytes + copy.bytes + output_files.heldBytes(outputsOf(server_id)),
          files: upper.files + copy.files,
          is_uncountable: upper.is_uncountable === true || copy.is_uncountable === true,
        });
      }
      return measured;
    },
    async readUsage(servers) {
      return new Map(
        servers.flatMap(({ server_id }) => {
          const used = readContainerUsage(server_id);
          const first_pid = states.readFirstPid(server_id);
          const traffic = first_pid !== undefined && readTraffic(first_pid);
          return used ? [[server_id, { ...used, ...traffic }] as const] : [];
        }),
      );
    },
  };
}
