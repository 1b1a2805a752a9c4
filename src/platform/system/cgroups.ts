import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, statSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { readAttribute } from './libc.ts';
import { hasErrorCode, isOutOfResources } from './system-errors.ts';

/** The limits that a group of processes can have. */
const CONTROLLERS = ['memory', 'cpu', 'pids'] as const;
export type Controller = (typeof CONTROLLERS)[number];

export interface CgroupLimits {
  memory_bytes: number;
  /** Thousandths of a core. */
  cpu: number;
  /** Processes and threads. */
  processes_max: number;
}

/** Control groups of this machine. A group has one directory for each hierarchy (version 1), or one in all (version 2). */
export interface Cgroups {
  /** The limits that this machine can enforce. */
  readonly controllers: readonly Controller[];
  /** Returns the directories of a group, which may not exist. The id is unique on this machine. */
  directoriesOf(id: string): string[];
  /** Creates a group, or changes the limits of an existing one. */
  create(id: string, limits: CgroupLimits): void;
}

/** The length of a period of the cpu controller. The quota is the processor time of a group in each period. */
export const CPU_PERIOD_US = 100_000;
/** The smallest quota that the kernel accepts. */
const CPU_QUOTA_MIN_US = 1_000;
/**
 * The weight of a group. If the machine has too little processor time, a busy group gets half of what a busy thread of this
 * process gets (version 1, in which a thread has 1,024), or of what its group gets (version 2, in which it has 100).
 */
const CPU_WEIGHT = { 1: '512', 2: '50' } as const;
const GROUP_NAME = /^muster-([0-9a-f-]{36})$/;
const nameOf = (id: string) => `muster-${id}`;
/** The group of this process, beside those that it creates: version 2 allows processes only in leaves of the tree. */
const OWN_LEAF = 'muster-service';

interface Hierarchy {
  version: 1 | 2;
  /** The directory of our own group, in which groups are created. */
  directory: string;
  /** Whether our group is the root of the machine or, in a container, of its namespace. */
  is_root: boolean;
  controllers: Controller[];
}

/**
 * Finds the controllers by which this process can limit others. Groups are created inside of our own group, so that its
 * limits hold for all of them, and a delegated group suffices. Removes old groups without processes, except those that
 * `isNeeded` names: the group of an ended server says whether its memory ran out.
 */
export function openCgroups(isNeeded: (id: string) => boolean = () => false): Cgroups {
  const hierarchies = findHierarchies(readProc('self/mountinfo'), readProc('self/cgroup')).flatMap(
    (one) => prepare(one) ?? [],
  );
  for (const hierarchy of hierarchies) removeOldGroups(hierarchy, isNeeded);
  return {
    controllers: CONTROLLERS.filter((one) => hierarchies.some(({ controllers }) => controllers.includes(one))),
    directoriesOf: (id) => hierarchies.map(({ directory }) => join(directory, nameOf(id))),
    create(id, limits) {
      for (const { version, directory, controllers } of hierarchies) {
        const group = join(directory, nameOf(id));
        mkdirSync(group, { recursive: true });
        for (const controller of controllers) setLimit(group, controller, { version, limits });
      }
    },
  };
}

/** Moves this process into a group, by the directories of the group. */
function enterGroup(directories: readonly string[]): void {
  for (const directory of directories) writeFileSync(join(directory, 'cgroup.procs'), '0');
}

/**
 * Memory of a group that came this near to its limit counts as used up, where the kernel does not count that. The group
 * of a pod has the same limit as the group in it, and holds some MiB more.
 */
const NEAR_LIMIT_BYTES = 8 * 1_024 ** 2;

/**
 * Returns whose memory had run out when the kernel killed processes of a group; undefined if it killed none for memory.
 * `is_in_pod`: the group is in another one with the same limit.
 */
export function findExhaustedMemory(
  directories: readonly string[],
  { is_in_pod = false } = {},
): 'group' | 'machine' | undefined {
  const directory = directories.find((one) => readEvent(one, 'oom_kill') > 0);
  if (directory === undefined) return undefined;
  // Version 1 counts only the kills, and version 2 counts at the group whose limit was reached.
  if (readEvent(directory, 'oom') > 0) return 'group';
  const has_count = existsSync(join(directory, 'memory.events')) && !is_in_pod;
  return !has_count && hasReachedLimit(directory) ? 'group' : 'machine';
}

/** Returns how often something happened to the memory of a group; 0 if that is not counted. */
function readEvent(directory: string, name: 'oom' | 'oom_kill'): number {
  const text = readText(join(directory, 'memory.events')) || readText(join(directory, 'memory.oom_control'));
  const [, count = '0'] = new RegExp(`^${name} (\\d+)$`, 'm').exec(text) ?? [];
  return Number(count);
}

/** Returns whether the memory of a group was near its limit once. A kernel that does not know it counts as a yes. */
function hasReachedLimit(directory: string): boolean {
  const peak = readText(join(directory, 'memory.peak')) || readText(join(directory, 'memory.max_usage_in_bytes'));
  const limit = readText(join(directory, 'memory.max')) || readText(join(directory, 'memory.limit_in_bytes'));
  return peak === '' || Number(peak) >= Number(limit) - NEAR_LIMIT_BYTES;
}

/** Lists the processes of a group, except those that have no id here because they are outside of our container. */
export function listGroupProcesses(directories: readonly string[]): number[] {
  const pids = directories.flatMap((directory) => readText(join(directory, 'cgroup.procs')).split('\n').map(Number));
  return [...new Set(pids)].filter((pid) => pid > 0);
}

/** Returns the ids of the groups that a process is in: one inside of the other, if there are several. */
export function readCgroupIds(pid: number): string[] {
  const names = readProc(`${pid}/cgroup`).split(/[/\n]/);
  return [...new Set(names.flatMap((name) => GROUP_NAME.exec(name)?.[1] ?? []))];
}

/** What the processes of a group have used. */
export interface CgroupUsage {
  cpu_ms: number;
  memory_bytes?: number;
}

/** Returns what a group has used since its creation; undefined if its processor time is not counted. */
export function readCgroupUsage(directories: readonly string[]): CgroupUsage | undefined {
  const cpu_ms = directories.map(readGroupTime).find((one) => one !== undefined);
  if (cpu_ms === undefined) return undefined;
  const memory_bytes = directories.map(readGroupMemory).find((one) => one !== undefined);
  return { cpu_ms, ...(memory_bytes !== undefined && { memory_bytes }) };
}

const NS_PER_MS = 1_000_000;
const US_PER_MS = 1_000;

function readGroupTime(directory: string): number | undefined {
  const nanoseconds = readText(join(directory, 'cpuacct.usage'));
  if (nanoseconds !== '') return Math.round(Number(nanoseconds) / NS_PER_MS);
  const [, microseconds] = /^usage_usec (\d+)$/m.exec(readText(join(directory, 'cpu.stat'))) ?? [];
  return microseconds === undefined ? undefined : Math.round(Number(microseconds) / US_PER_MS);
}

/** Returns the memory of a group without cached files, which the kernel drops when memory is needed. */
function readGroupMemory(directory: string): number | undefined {
  const text = readText(join(directory, 'memory.current')) || readText(join(directory, 'memory.usage_in_bytes'));
  if (text === '') return undefined;
  const stat = readText(join(directory, 'memory.stat'));
  const [, inactive = '0'] = /^total_inactive_file (\d+)$/m.exec(stat) ?? /^inactive_file (\d+)$/m.exec(stat) ?? [];
  return Math.max(Number(text) - Number(inactive), 0);
}

/** How long an unknown group is kept, because another service may just have created it. */
const ABANDONED_AFTER_MS = 3_600_000;

/** Removes old groups without processes, which belonged to services that no longer exist. */
function removeOldGroups({ directory }: Hierarchy, isNeeded: (id: string) => boolean): void {
  for (const name of readdirSync(directory)) {
    const [, id] = GROUP_NAME.exec(name) ?? [];
    if (id === undefined || isNeeded(id)) continue;
    const group = join(directory, name);
    const since = statSync(group, { throwIfNoEntry: false })?.mtimeMs ?? Date.now();
    if (Date.now() - since < ABANDONED_AFTER_MS) continue;
    try {
      rmdirSync(group);
    } catch {
      // The group has processes, or was removed meanwhile.
    }
  }
}

/** Attempts to remove a group, because the kernel finishes the end of a killed process a moment later. */
const REMOVALS_MAX = 40;
const REMOVAL_PAUSE_MS = 25;

/** Removes a group whose processes have ended, by its directories. */
export async function removeGroup(directories: readonly string[]): Promise<void> {
  for (const directory of directories) {
    for (let removal = 1; !tryRemoval(directory, { is_last: removal === REMOVALS_MAX }); removal += 1) {
      await Bun.sleep(REMOVAL_PAUSE_MS);
    }
  }
}

/** Removes a directory of a group. Returns false if a process is still in it, which throws the last time. */
function tryRemoval(directory: string, { is_last }: { is_last: boolean }): boolean {
  try {
    rmdirSync(directory);
    return true;
  } catch (error) {
    if (hasErrorCode(error, 'ENOENT')) return true;
    if (is_last || !hasErrorCode(error, 'EBUSY')) throw error;
    return false;
  }
}

/** Returns the processor time of a group in each period, in microseconds. `cpu`: in thousandths of a core. */
export const cpuQuotaOf = (cpu: number): number =>
  Math.max(CPU_QUOTA_MIN_US, Math.round((cpu * CPU_PERIOD_US) / 1_000));

/** Returns the files with a limit, and their content. */
export function limitFilesOf(
  controller: Controller,
  { version, limits }: { version: 1 | 2; limits: CgroupLimits },
): [name: string, value: string][] {
  const memory = String(limits.memory_bytes);
  const quota_us = String(cpuQuotaOf(limits.cpu));
  switch (controller) {
    case 'memory':
      // With swap a server would take twice its memory.
      return version === 1
        ? [
            ['memory.limit_in_bytes', memory],
            ['memory.memsw.limit_in_bytes', memory],
          ]
        : [
            ['memory.max', memory],
            ['memory.swap.max', '0'],
          ];
    case 'cpu':
      return version === 1
        ? [
            ['cpu.cfs_period_us', String(CPU_PERIOD_US)],
            ['cpu.cfs_quota_us', quota_us],
            ['cpu.shares', CPU_WEIGHT[version]],
          ]
        : [
            ['cpu.max', `${quota_us} ${CPU_PERIOD_US}`],
            ['cpu.weight', CPU_WEIGHT[version]],
          ];
    case 'pids':
      return [['pids.max', String(limits.processes_max)]];
  }
}

/** Files that a kernel without swap accounting does not have. */
const OPTIONAL_FILES = ['memory.memsw.limit_in_bytes', 'memory.swap.max'];

function setLimit(group: string, controller: Controller, how: { version: 1 | 2; limits: CgroupLimits }): void {
  for (const [name, value] of limitFilesOf(controller, how)) {
    const file = join(group, name);
    if (OPTIONAL_FILES.includes(name) && !existsSync(file)) continue;
    writeFileSync(file, value);
  }
}

/** Returns the hierarchies with controllers that we use, each with the directory of our own group. */
export function findHierarchies(mountinfo: string, own_groups: string): Hierarchy[] {
  const mounts = mountinfo.split('\n').flatMap((line) => {
    const [mounted = '', described = ''] = line.split(' - ');
    const [, , , root = '', mount_point = ''] = mounted.split(' ');
    const [type = '', , options = ''] = described.split(' ');
    return type === 'cgroup' || type === 'cgroup2' ? [{ type, root, mount_point, options: options.split(',') }] : [];
  });
  const found: Hierarchy[] = [];
  for (const line of own_groups.split('\n')) {
    const [id, names = '', path] = splitOwnGroup(line);
    if (path === undefined) continue;
    const version = id === '0' && names === '' ? 2 : 1;
    const wanted = CONTROLLERS.filter((one) => names.split(',').includes(one));
    if (version === 1 && wanted.length === 0) continue;
    const mount = mounts.find(({ type, options }) =>
      version === 2 ? type === 'cgroup2' : type === 'cgroup' && wanted.every((one) => options.includes(one)),
    );
    const below = mount && relative(mount.root, path);
    // The mounted tree lacks this group, for example in a container without a cgroup namespace of its own.
    if (!mount || below === undefined || below.startsWith('..')) continue;
    found.push({ version, directory: join(mount.mount_point, below), is_root: path === '/', controllers: wanted });
  }
  return found;
}

function splitOwnGroup(line: string): [id?: string, controllers?: string, path?: string] {
  const [, id, controllers, path] = /^(\d+):([^:]*):(.*)$/.exec(line) ?? [];
  return [id, controllers, path];
}

/** Returns a hierarchy with the controllers whose limits can be set; undefined if there are none. */
function prepare(found: Hierarchy): Hierarchy | undefined {
  const hierarchy = found.version === 1 ? found : prepareUnified(found);
  if (!hierarchy) return undefined;
  const controllers = tryControllers(hierarchy);
  return controllers.length > 0 ? { ...hierarchy, controllers } : undefined;
}

const TRIAL_LIMITS: CgroupLimits = { memory_bytes: 64 * 1_024 ** 2, cpu: 1_000, processes_max: 64 };

/** Creates a group for a moment and returns the controllers whose limits it accepts. */
function tryControllers({ version, directory, controllers }: Hierarchy): Controller[] {
  const trial = join(directory, `muster-trial-${process.pid}`);
  try {
    // A service that was killed may have left it.
    mkdirSync(trial, { recursive: true });
  } catch {
    return [];
  }
  try {
    return controllers.filter((controller) => {
      try {
        setLimit(trial, controller, { version, limits: TRIAL_LIMITS });
        return true;
      } catch {
        return false;
      }
    });
  } finally {
    rmdirSync(trial);
  }
}

/**
 * Returns the version 2 hierarchy at a directory in which groups can be created: the parent of our group if it is delegated
 * to us (systemd's DelegateSubgroup), or our own group if it is delegated or the root of a container.
 */
function prepareUnified({ directory: own, is_root }: Hierarchy): Hierarchy | undefined {
  const directory = is_root ? own : [join(own, '..'), own].find(isDelegated);
  if (directory === undefined) return undefined;
  const offered = readText(join(directory, 'cgroup.controllers')).trim().split(' ');
  const controllers = CONTROLLERS.filter((one) => offered.includes(one));
  if (controllers.length === 0) return undefined;
  return enableBelow(directory, controllers) ? { version: 2, directory, is_root, controllers } : undefined;
}

/** Returns whether a group is delegated to us: systemd marks it (Delegate=), and others change its owner. */
function isDelegated(directory: string): boolean {
  const owner = statSync(join(directory, 'cgroup.procs'), { throwIfNoEntry: false })?.uid;
  if (owner !== undefined && owner !== 0 && owner === process.getuid?.()) return true;
  return ['user.delegate', 'trusted.delegate'].some((name) => readAttribute(directory, name) === '1');
}

/** Lets the children of a group be limited. Returns whether they can be. */
function enableBelow(directory: string, controllers: Controller[]): boolean {
  const file = join(directory, 'cgroup.subtree_control');
  const enabled = readText(file).trim().split(' ');
  const missing = controllers.filter((one) => !enabled.includes(one));
  if (missing.length === 0) return true;
  const enable = () => writeFileSync(file, missing.map((one) => `+${one}`).join(' '));
  try {
    enable();
    return true;
  } catch (error) {
    if (!hasErrorCode(error, 'EBUSY')) return false;
  }
  // A group with processes of its own cannot limit its children, so this process moves to one of them.
  const leaf = join(directory, OWN_LEAF);
  try {
    mkdirSync(leaf, { recursive: true });
    enterGroup([leaf]);
    enable();
    return true;
  } catch {
    enterGroup([directory]);
    return false;
  }
}

const readProc = (path: string) => readText(join('/proc', path));

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    // Without a free descriptor or memory the group may still have processes, so it must not count as empty.
    if (isOutOfResources(error)) throw error;
    return '';
  }
}
