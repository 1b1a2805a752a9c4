import { existsSync, mkdirSync } from 'node:fs';
import { chown, mkdir } from 'node:fs/promises';
import { pace } from '../../../../platform/pacing.ts';
import { openCgroups } from '../../../../platform/system/cgroups.ts';
import { removeFolder } from '../../../../platform/system/folder-removal.ts';
import {
  findOpenFile,
  identifyProcess,
  isRunning,
  listProcesses,
  type ProcessIdentity,
  readChildren,
  sessionOf,
  signalProcess,
} from '../../../../platform/system/processes.ts';
import { findSocketsAt } from '../../../../platform/system/tcp-ports.ts';
import { LOG_STREAMS } from '../../tables.ts';
import { measureDisk } from '../disk-use.ts';
import { type IsolationSetting, readIsolation, refusePartialIsolation } from '../isolation.ts';
import { mayBeOutOfMemory, readExitStatus } from '../linux/exit-status.ts';
import { killServers } from '../linux/killing.ts';
import { createProcessTrees, type ProcessServer } from '../linux/process-trees.ts';
import { createOutputFiles } from '../output/output-files.ts';
import type { Accepted, DiskUse, Observation, Runtime, ServerHandle, StartOrder, UsageReading } from '../runtime.ts';
import { readIdentity, writeIdentity } from './identity.ts';
import { createLaunching } from './launching.ts';
import { findLauncher, findOwnProgram } from './muster-executable.ts';
import { createUsage } from './process-usage.ts';
import { openServerFolders } from './server-folders.ts';
import { openServerGroups } from './server-groups.ts';
import { openServerUsers } from './server-users.ts';
import { findStrayPorts } from './stray-ports.ts';

export interface ProcessRuntimeOptions {
  /** The directory with a folder for each server. */
  directory: string;
  /** The directory of all data of the service, which servers must not read. */
  data_directory: string;
  /** The directory for a copy of Muster's executable. */
  programs_directory: string;
  /** The name or address at which players reach this machine. */
  host: string;
  /** Whether each server has a user of its own. This requires root. */
  has_separate_users: boolean;
  isolation: IsolationSetting;
}

/**
 * Opens the runtime that runs servers as processes of this machine: a script with Muster's executable, an archive with
 * its command. Each process has its own session and writes to files, so it continues when the service stops.
 */
export async function openProcessRuntime(options: ProcessRuntimeOptions): Promise<Runtime> {
  const { host, data_directory } = options;
  const is_separate = options.has_separate_users;
  const own_program = await findOwnProgram(options.programs_directory, { is_separate });
  const launcher = await findLauncher(options.programs_directory);
  const folders = openServerFolders(options.directory);
  const users = openServerUsers(folders, { is_separate });
  const readTrees = createProcessTrees();
  const usage = createUsage();
  const output_files = createOutputFiles();
  const cgroups = openCgroups((server_id) => existsSync(folders.folderOf(server_id)));
  const groups = openServerGroups(folders, cgroups);
  const isolation = readIsolation(options.isolation, cgroups);
  const spawn = createLaunching({ folders, groups, isolation, own_program, launcher, data_directory });
  let notify = () => {};

  const locate = ({ server_id, identity }: ServerHandle): ProcessServer => ({
    server_id,
    process: readIdentity(identity),
    user_id: users.userOf(server_id),
  });
  const runningAs = (process: ProcessIdentity): Accepted => ({ is: 'running', identity: writeIdentity(process), host });
  const endOf = (server_id: string): Observation => {
    const status = readExitStatus(folders.exit(server_id));
    // When memory runs out, the kernel kills one process. Memory is the reason for the end only if that was the first
    // process.
    const reason = mayBeOutOfMemory(status) ? groups.reasonOf(server_id) : undefined;
    return { is: 'ended', ...status, ...(reason !== undefined && { reason }) };
  };

  async function observe(servers: readonly ServerHandle[]): Promise<Map<string, Observation>> {
    const observed = new Map<string, Observation>();
    const unrecorded: ProcessServer[] = [];
    for (const { server_id, identity } of servers) {
      const process = readIdentity(identity);
      if (process) observed.set(server_id, isRunning(process) ? runningAs(process) : endOf(server_id));
      else if (!existsSync(folders.exit(server_id))) observed.set(server_id, { is: 'absent' });
      else unrecorded.push(locate({ server_id, identity }));
      await pace();
    }
    // If the service was killed between starting a server and recording it, traces identify the server.
    for (const [server_id, tree] of await readTrees(unrecorded)) {
      const leader = tree.find(({ pid, session }) => session === pid)?.pid ?? (await findShim(server_id));
      const process = leader === undefined ? undefined : identifyProcess(leader);
      observed.set(server_id, process ? runningAs(process) : endOf(server_id));
    }
    return observed;
  }

  /**
   * Returns the first process of a server that wrote no exit status, by its open file for the status: while the kernel
   * starts its program, its environment, which names the server, cannot be read.
   */
  async function findShim(server_id: string): Promise<number | undefined> {
    const { exit_code, exit_signal } = readExitStatus(folders.exit(server_id));
    if (exit_code !== null || exit_signal !== null) return undefined;
    for (const pid of listProcesses()) {
      if (sessionOf(pid) === pid && (await hasExitFileOpen(pid, server_id))) return pid;
      await pace();
    }
    return undefined;
  }

  async function hasExitFileOpen(pid: number, server_id: string): Promise<boolean> {
    const exit = folders.exit(server_id);
    return (await findOpenFile(pid, (path) => path === exit)) !== undefined;
  }

  async function start(order: StartOrder): Promise<Accepted> {
    const { server_id } = order;
    const seen = (await observe([{ server_id, identity: undefined }])).get(server_id);
    if (seen?.is === 'running') return seen;
    if (options.isolation === 'required') refusePartialIsolation(isolation);
    const work = folders.work(server_id);
    mkdirSync(folders.folderOf(server_id), { recursive: true, mode: 0o711 });
    const user_id = users.assign(server_id);
    await mkdir(work, { recursive: true, mode: 0o700 });
    if (user_id !== undefined) await chown(work, user_id, user_id);
    const environment = { PATH: '/usr/local/bin:/usr/bin:/bin', HOME: work, TMPDIR: work, ...order.environment };
    const child = spawn({ order, environment, user_id, onExit: () => notify() });
    child.unref();
    return runningAs(identifyProcess(child.pid) ?? { pid: child.pid, start_ticks: 0, boot_id: '' });
  }

  /** Returns whether the shim has started the server. An earlier signal would end the shim, or have no effect. */
  async function hasStarted(server_id: string, shim: ProcessIdentity): Promise<boolean> {
    const children = readChildren(shim.pid);
    if (!children) return true;
    // Until the child executes the server, it has the shim's exit file open and perhaps the shim's traps.
    for (const pid of children) if (!(await hasExitFileOpen(pid, server_id))) return true;
    return false;
  }

  const outputsOf = (server_id: string) => LOG_STREAMS.map((stream) => folders.output(server_id, stream));

  return {
    kinds: ['archive', 'javascript'],
    host,
    isolation,
    start,
    observe,
    kill: (servers, onGone) => killServers(servers.map(locate), { readTrees, listGroup: groups.processesOf, onGone }),
    readOutput: ({ server_id }, stream, query) => output_files.read(folders.output(server_id, stream), query),
    async stop({ server_id, identity }) {
      const process = readIdentity(identity);
      if (!process || !isRunning(process)) return true;
      if (!(await hasStarted(server_id, process))) return false;
      signalProcess(-process.pid, 'SIGTERM');
      return true;
    },
    async readUsage(servers) {
      const used = new Map<string, UsageReading>();
      for (const { server_id } of servers) {
        const of_group = groups.usageOf(server_id);
        if (of_group) used.set(server_id, of_group);
        await pace();
      }
      const trees = await readTrees(servers.filter(({ server_id }) => !used.has(server_id)).map(locate));
      for (const [server_id, cpu_ms] of usage.add(trees)) {
        const memory_bytes = (trees.get(server_id) ?? []).reduce((sum, one) => sum + one.memory_bytes, 0);
        used.set(server_id, { cpu_ms, memory_bytes });
      }
      return used;
    },
    async measureDisk(servers, limit) {
      const measured = new Map<string, DiskUse>();
      for (const [server_id, tree] of await readTrees(servers.map(locate))) {
        const folder = folders.work(server_id);
        const isInside = (path: string) => path.startsWith(`${folder}/`);
        const used = await measureDisk({ folder, pids: tree.map(({ pid }) => pid), isInside }, limit);
        measured.set(server_id, { ...used, bytes: used.bytes + output_files.heldBytes(outputsOf(server_id)) });
      }
      return measured;
    },
    async findStrayPorts(servers) {
      if (isolation.level === 'off') return new Map();
      // Servers that were started without rules of ports may listen anywhere. So may those of other runtimes.
      const restricted = servers.filter(({ server_id }) => existsSync(folders.portRules(server_id)));
      const listening = restricted.map(({ ports, ...handle }) => ({ ...locate(handle), ports }));
      return await findStrayPorts(listening, readTrees);
    },
    async findServersOnPort(servers, port) {
      const sockets = findSocketsAt(port);
      const on_port = new Set<string>();
      for (const [server_id, tree] of await readTrees(servers.map(locate))) {
        for (const { pid } of tree) {
          if (on_port.has(server_id)) break;
          if (await findOpenFile(pid, (path) => sockets.has(path))) on_port.add(server_id);
        }
      }
      return on_port;
    },
    async remove(server_id) {
      await groups.remove(server_id);
      await removeFolder(folders.folderOf(server_id));
      users.release(server_id);
      for (const stream of LOG_STREAMS) output_files.forget(folders.output(server_id, stream));
    },
    list: async () => folders.list().map((server_id) => ({ server_id, identity: undefined })),
    onChange(listener) {
      notify = listener;
    },
  };
}
