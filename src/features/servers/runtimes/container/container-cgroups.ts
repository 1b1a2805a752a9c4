import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import {
  type CgroupUsage,
  listGroupProcesses,
  readCgroupUsage,
  removeGroup,
} from '../../../../platform/system/cgroups.ts';
import { isOutOfResources } from '../../../../platform/system/system-errors.ts';
import { describeOutOfMemory } from '../out-of-memory.ts';

const MOUNT = '/sys/fs/cgroup';
/** The group that contains the groups of all containers. */
const PARENT = 'muster-containers';

/** Returns the path of a container's control group, below each of the mounted hierarchies. */
export const cgroupOf = (server_id: string): string => `/${PARENT}/${server_id}`;

/** Returns whether this machine limits swap, too. */
export const hasSwapLimit = (): boolean => existsSync(join(MOUNT, 'memory/memory.memsw.limit_in_bytes')) || isUnified();

/** Lists the processes in a container's control groups. */
export const listCgroupProcesses = (server_id: string): number[] => listGroupProcesses(directoriesOf(server_id));

/** Returns what a container has used; undefined if it is not counted. */
export const readContainerUsage = (server_id: string): CgroupUsage | undefined =>
  readCgroupUsage(directoriesOf(server_id));

/** Returns why the kernel killed processes of a container for memory; undefined if it killed none. `memory`: in MiB. */
export function describeMemoryKill(server_id: string, memory: number | undefined): string | undefined {
  return describeOutOfMemory({ directories: directoriesOf(server_id), memory });
}

/** Removes the control groups of a container without processes. */
export const removeCgroups = (server_id: string): Promise<void> => removeGroup(directoriesOf(server_id));

const isUnified = () => existsSync(join(MOUNT, 'cgroup.controllers'));

/** Lists the existing directories of a container's control group: one for each hierarchy. */
function directoriesOf(server_id: string): string[] {
  const hierarchies = isUnified() ? [''] : listHierarchies();
  return hierarchies.map((one) => join(MOUNT, one, cgroupOf(server_id))).filter((directory) => existsSync(directory));
}

function listHierarchies(): string[] {
  try {
    return readdirSync(MOUNT);
  } catch (error) {
    if (isOutOfResources(error)) throw error;
    return [];
  }
}
