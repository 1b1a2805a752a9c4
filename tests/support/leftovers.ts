import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { listProcesses, readStat } from '../../src/platform/system/processes.ts';

const namesIn = (folder: string) => readdirSync(folder, { withFileTypes: true });

/** Lists the control groups of servers, in all hierarchies. */
export function groupsOf(server_ids: ReadonlySet<string>, folder = '/sys/fs/cgroup'): string[] {
  const folders = namesIn(folder).filter((entry) => entry.isDirectory());
  return folders.flatMap(({ name }) => [
    ...([...server_ids].some((id) => name.includes(id)) ? [join(folder, name)] : []),
    ...groupsOf(server_ids, join(folder, name)),
  ]);
}

/** Counts the zombies of the whole machine, because a process that a server left may be a child of any other process. */
export const countZombies = (): number => listProcesses().filter((pid) => readStat(pid)?.is_dead).length;

/** Counts the open files of a process. */
export const countDescriptors = (pid: number): number => namesIn(`/proc/${pid}/fd`).length;

/** Lists the mounts of a process in a folder. The network of a container, with its rules, is one of them. */
export const mountsIn = (folder: string, pid: number): string[] =>
  readFileSync(`/proc/${pid}/mountinfo`, 'utf8')
    .split('\n')
    .filter((line) => line.includes(folder));
