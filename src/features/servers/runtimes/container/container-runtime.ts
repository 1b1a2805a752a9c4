import { closeSync, existsSync, mkdirSync, openSync, readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { removeFolder } from '../../../../platform/folder-removal.ts';
import { readDescriptorsMax } from '../../../../platform/http/open-connections.ts';
import { forEachAtOnce, pace } from '../../../../platform/pacing.ts';
import {
  identifyProcess,
  isRunning,
  type ProcessIdentity,
  readChildren,
  readStat,
  sessionOf,
  signalProcess,
} from '../../../../platform/processes.ts';
import { describeUnexpectedFailure } from '../../start-failure.ts';
import { LOG_STREAMS, type LogStream } from '../../tables.ts';
import { measureDisk } from '../disk-use.ts';
import { createExitFile, mayBeOutOfMemory, readExitStatus } from '../process/exit-status.ts';
import { killServers } from '../process/killing.ts';
import { createOutputFiles, pieceAt } from '../process/output-files.ts';
import { createProcessTrees, MARK, type ProcessServer } from '../process/process-trees.ts';
import {
  type DiskUse,
  type Observation,
  type OutputPiece,
  type OutputQuery,
  type Runtime,
  SETTING_UP,
  type ServerHandle,
  type Started,
  type StartOrder,
} from '../runtime.ts';
import {
  cgroupOf,
  describeMemoryKill,
  hasSwapLimit,
  listCgroupProcesses,
  readContainerUsage,
  removeCgroups,
} from './container-cgroups.ts';
import { makeContainerConfig } from './container-config.ts';
import { openContainerFolders } from './container-folders.ts';
import { readContainerIdentity, writeContainerIdentity } from './container-identity.ts';
import { type ContainerNetwork, HOSTS, planNetwork, RESOLV_CONF } from './container-network.ts';
import type { ContainerPrograms } from './container-programs.ts';
import { containerCommand } from './container-shim.ts';
import { readTraffic } from './container-traffic.ts';
import { readImage, rootOf } from './image.ts';

/** How long a launch waits for its container to start. Afterwards it is pending, for example while its files are copied. */
const START_TIMEOUT_MS = 5_000;
const START_POLL_MS = 5;
/** Programs may write a line for each file. */
const SET_UP_CHARACTERS_MAX = 1_000;
const NETWORK_ENDED = 'the network of its container ended unexpectedly';
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
  const open_files_max = readDescriptorsMax();
  /** The servers whose failed set-up was reported. */
  const reported = new Set<string>();
  let notify = () => {};

  const locate = ({ server_id, identity }: ServerHandle): ProcessServer => ({
    server_id,
    process: readContainerIdentity(identity),
    user_id: undefined,
  });
  const endOf = (server_id: string): Observation => {
    if (existsSync(folders.setUpFailed(server_id))) {
      const cause = describeSetUp(server_id);
      if (!reported.has(server_id)) options.onStartFailed?.(server_id, cause);
      reported.add(server_id);
      return { is: 'ended', exit_code: null, exit_signal: null, reason: describeUnexpectedFailure(cause) };
    }
    const status = readExitStatus(folders.exit(server_id));
    // When memory runs out, the kernel kills one process. Memory is the reason for the end only if that was the first
    // process.
    if (!mayBeOutOfMemory(status)) return { is: 'ended', ...status };
    if (existsSync(folders.networkEnded(server_id))) return { is: 'ended', ...status, reason: NETWORK_ENDED };
    const reason = describeMemoryKill(server_id, readMemory(server_id));
    return { is: 'ended', ...status, ...(reason !== undefined && { reason }) };
  };

  function statusOf(server_id: string, shim: ProcessIdentity): Started {
    const identity = writeContainerIdentity(shim);
    return readFirstPid(server_id) === undefined
      ? { is: 'pending', identity, reason: SETTING_UP }
      : { is: 'running', identity, host };
  }

  /** Returns the process id of a container's first process; undefined until it runs. */
  const readFirstPid = (server_id: string) => readNumber(folders.init(server_id));

  /** Returns how many MiB of memory a container may have; undefined if it was not set up completely. */
  const readMemory = (server_id: string) => readNumber(folders.memory(server_id));

  function readNumber(file: string): number | undefined {
    const text = existsSync(file) ? readFileSync(file, 'utf8') : '';
    return text === '' ? undefined : Number(text);
  }

  async function observe(servers: readonly ServerHandle[]): Promise<Map<string, Observation>> {
    const observed = new Map<string, Observation>();
    const unrecorded: ProcessServer[] = [];
    for (const server of servers) {
      const { server_id } = server;
      const { process: shim } = locate(server);
      if (shim) observed.set(server_id, isRunning(shim) ? statusOf(server_id, shim) : endOf(server_id));
      else if (!existsSync(folders.exit(server_id))) observed.set(server_id, { is: 'absent' });
      else unrecorded.push(locate(server));
      await pace();
    }
    for (const [server_id, tree] of await readTrees(unrecorded)) {
      const leader = tree.find(({ pid, session }) => session === pid);
      const shim = leader && identifyProcess(leader.pid);
      observed.set(server_id, shim ? statusOf(server_id, shim) : endOf(server_id));
    }
    return observed;
  }

  async function start(order: StartOrder): Promise<Started> {
    const { server_id } = order;
    const seen = (await observe([{ server_id, identity: undefined }])).get(server_id);
    if (seen?.is === 'running' || seen?.is === 'pending') return seen;
    const network = planNetwork(order.ports, api_url);
    await makeBundle(order, network);
    const shim = spawnShim(order, network);
    const deadline = performance.now() + START_TIMEOUT_MS;
    while (readFirstPid(server_id) === undefined && isRunning(shim) && performance.now() < deadline) {
      await Bun.sleep(START_POLL_MS);
    }
    if (readFirstPid(server_id) !== undefined || isRunning(shim)) return statusOf(server_id, shim);
    reported.add(server_id);
    throw describeSetUp(server_id);
  }

  /** Returns why a container could not be set up. It names files of the machine, so it is not for the developer. */
  function describeSetUp(server_id: string): Error {
    const files = [folders.setupLog(server_id), folders.output(server_id, 'std_err')];
    const reason = files.map((file) => readFileSync(file, 'utf8')).join('');
    const failure = new Error(`the container could not be set up: ${reason.trim().slice(0, SET_UP_CHARACTERS_MAX)}`);
    // The programs of the set-up say it in these words; such a start is tried again.
    return reason.includes('No space left on device') ? Object.assign(failure, { code: 'ENOSPC' }) : failure;
  }

  /** Creates the folder of a container, without anything that an unfinished start left. */
  async function makeBundle(order: StartOrder, { rules }: ContainerNetwork): Promise<void> {
    const { server_id } = order;
    const folder = folders.folderOf(server_id);
    await killGroup(server_id);
    await removeAll(server_id);
    mkdirSync(folder, { mode: 0o700 });
    createExitFile(folders.exit(server_id));
    const image = await readImage(order.build);
    for (const name of ['rootfs', 'upper', 'overlay', 'state']) mkdirSync(join(folder, name), { mode: 0o755 });
    const config = makeContainerConfig({
      order,
      image,
      folder,
      init: programs.init,
      cgroup: cgroupOf(server_id),
      has_read_only_root,
      has_swap_limit: hasSwapLimit(),
      open_files_max,
    });
    const files = {
      'config.json': JSON.stringify(config),
      'resolv.conf': RESOLV_CONF,
      hosts: HOSTS,
      'network.nft': rules,
      netns: '',
      'setup.log': '',
      memory: String(order.resources.memory),
    };
    for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text, { mode: 0o644 });
  }

  function spawnShim({ server_id, build }: StartOrder, { pasta_arguments }: ContainerNetwork): ProcessIdentity {
    const folder = folders.folderOf(server_id);
    const root = relative(folder, rootOf(build));
    const files = [
      openSync(folders.output(server_id, 'std_out'), 'a', 0o600),
      openSync(folders.output(server_id, 'std_err'), 'a', 0o600),
      openSync(folders.exit(server_id), 'r+'),
    ] as const;
    try {
      const child = Bun.spawn(containerCommand({ programs, server_id, root, pasta_arguments }), {
        cwd: folder,
        env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', [MARK]: server_id },
        // A session of its own, so that a ctrl-C for the service does not reach it.
        detached: true,
        stdio: ['ignore', ...files],
        onExit: () => notify(),
      });
      child.unref();
      return identifyProcess(child.pid) ?? { pid: child.pid, start_ticks: 0, boot_id: '' };
    } finally {
      for (const file of files) closeSync(file);
    }
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
    reported.delete(server_id);
  }

  /** Reads the output of a container. Until its program runs, the OCI runtime writes there, with files of the machine. */
  async function readOutput({ server_id }: ServerHandle, stream: LogStream, query: OutputQuery): Promise<OutputPiece> {
    if (readFirstPid(server_id) !== undefined) return await output_files.read(folders.output(server_id, stream), query);
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
      const first_pid = readFirstPid(server_id);
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
          const first_pid = readFirstPid(server_id);
          const traffic = first_pid !== undefined && readTraffic(first_pid);
          return used ? [[server_id, { ...used, ...traffic }] as const] : [];
        }),
      );
    },
  };
}
