import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import {
  type CgroupLimits,
  type Cgroups,
  type CgroupUsage,
  listGroupProcesses,
  readCgroupUsage,
  removeGroup,
} from '../../../../platform/system/cgroups.ts';
import { MIB } from '../../../../platform/units.ts';
import { describeOutOfMemory } from '../out-of-memory.ts';
import { PROCESSES_MAX, type ServerResources } from '../runtime.ts';
import type { ServerFolders } from './server-folders.ts';

/** The control group of a server, as recorded in its folder: another start of the service may create groups elsewhere. */
interface ServerGroup {
  directories: string[];
  /** MiB; undefined if the record is damaged. */
  memory: number | undefined;
}

/** The control groups of servers: one for each. */
export interface ServerGroups {
  /** Creates the group of a server, and returns its directories. */
  create(server_id: string, resources: ServerResources): string[];
  /** Returns what the processes of a server have used; undefined if it has no group that counts. */
  usageOf(server_id: string): CgroupUsage | undefined;
  /** Returns why the kernel ended processes of a server; undefined if it did not. */
  reasonOf(server_id: string): string | undefined;
  /** Lists the processes in the group of a server. */
  processesOf(server_id: string): number[];
  /** Removes the group of a server that has ended completely. */
  remove(server_id: string): Promise<void>;
}

export function openServerGroups(folders: ServerFolders, cgroups: Cgroups): ServerGroups {
  const known = new Map<string, ServerGroup>();

  function read(server_id: string): ServerGroup | undefined {
    const found = known.get(server_id);
    if (found) return found;
    const file = folders.group(server_id);
    if (!existsSync(file)) return undefined;
    const group = parse(readFileSync(file, 'utf8')) ?? makeGroup(server_id);
    known.set(server_id, group);
    return group;
  }

  const makeGroup = (server_id: string, memory?: number): ServerGroup => ({
    directories: cgroups.directoriesOf(server_id),
    memory,
  });

  return {
    create(server_id, resources) {
      const group = makeGroup(server_id, resources.memory);
      const file = folders.group(server_id);
      // Recorded before it exists, so that it is removed even if the service is killed now.
      writeFileSync(`${file}.unfinished`, JSON.stringify(group), { mode: 0o600 });
      renameSync(`${file}.unfinished`, file);
      known.set(server_id, group);
      cgroups.create(server_id, limitsOf(resources));
      return group.directories;
    },
    usageOf(server_id) {
      const group = read(server_id);
      return group && readCgroupUsage(group.directories);
    },
    reasonOf(server_id) {
      const group = read(server_id);
      return group && describeOutOfMemory(group);
    },
    processesOf: (server_id) => listGroupProcesses(read(server_id)?.directories ?? []),
    async remove(server_id) {
      const directories = read(server_id)?.directories ?? [];
      known.delete(server_id);
      await removeGroup(directories);
    },
  };
}

/** Reads the record of a group; undefined if a power failure has damaged it. */
function parse(text: string): ServerGroup | undefined {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Returns the limits of a server with these resources. */
export function limitsOf({ cpu, memory }: ServerResources): CgroupLimits {
  return { cpu, memory_bytes: memory * MIB, processes_max: PROCESSES_MAX };
}
