import { chown } from 'node:fs/promises';
import { openCgroups, removeGroup } from '../../../src/platform/system/cgroups.ts';
import { WITHOUT_CONTAINERS } from '../runtimes/containers.ts';
import { ENGINES, type EngineName, reasonWithoutEngine } from '../runtimes/engines.ts';
import { IS_ROOT } from '../runtimes/runtimes.ts';

/** The user of services that are not root. */
export const USER_ID = 64_322;

/** A way to run the service, and game servers by it. */
export interface Level {
  name: string;
  isolation: 'on' | 'off';
  is_root: boolean;
  has_groups: boolean;
  /** What runs the servers: by default they are processes. */
  containers?: 'runc' | EngineName;
}

const CONTAINED = { isolation: 'on', is_root: true, has_groups: true } as const;

export const LEVELS: Level[] = [
  { name: 'root', isolation: 'on', is_root: true, has_groups: true },
  { name: 'user with cgroups', isolation: 'on', is_root: false, has_groups: true },
  { name: 'user', isolation: 'on', is_root: false, has_groups: false },
  { name: 'off, root', isolation: 'off', is_root: true, has_groups: false },
  { name: 'off, user', isolation: 'off', is_root: false, has_groups: false },
  { name: 'container', ...CONTAINED, containers: 'runc' },
  { name: 'Docker', ...CONTAINED, containers: 'docker' },
  { name: 'Podman', ...CONTAINED, containers: 'podman' },
];

/** Returns why this machine cannot try a level; undefined if it can. */
export function reasonWithoutLevel({ containers }: Level): string | undefined {
  // Only root can run the service as others.
  if (!IS_ROOT || openCgroups().controllers.length < 3) return 'it needs root and writable control groups';
  if (containers === 'runc') return WITHOUT_CONTAINERS;
  return ENGINES.includes(containers as EngineName) ? reasonWithoutEngine(containers as EngineName) : undefined;
}

/** Makes control groups that belong to the user of the service, as a delegation does. Returns their directories. */
export async function delegateGroups(opened: AsyncDisposableStack): Promise<string[]> {
  const cgroups = openCgroups();
  const id = crypto.randomUUID();
  cgroups.create(id, { memory_bytes: 4 * 1_024 ** 3, cpu: 2_000, processes_max: 4_096 });
  const directories = cgroups.directoriesOf(id);
  opened.defer(() => removeGroup(directories));
  for (const directory of directories) {
    for (const path of [directory, `${directory}/cgroup.procs`]) await chown(path, USER_ID, USER_ID);
  }
  return directories;
}
