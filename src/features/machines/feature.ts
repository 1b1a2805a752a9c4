import { hostname } from 'node:os';
import type { DataDirectory } from '../../platform/data-directory.ts';
import type { Feature } from '../../platform/feature.ts';
import type { Identities } from '../identities/identities.ts';
import { createMachines, type Load, type Machines, type MachinesDependencies } from './machines.ts';
import { machineRoutes } from './routes.ts';

const NO_LOBBIES = { lobbies: 0, players: 0 };

interface Dependencies extends Omit<MachinesDependencies, 'own' | 'loads' | 'requireAdministrator'> {
  data: Pick<DataDirectory, 'node_id' | 'path' | 'place'>;
  /** The datacenter of this machine. */
  datacenter_id: string;
  /** Whether a cluster runs the servers of this process. */
  has_cluster: boolean;
  identities: Pick<Identities, 'requireAdministrator'>;
  /** Returns how many servers run on machines that have any. */
  countServers(): Promise<ReadonlyMap<string, number>>;
  /** Returns how many lobbies run on machines that have any, and their players. */
  countLobbies(): Promise<ReadonlyMap<string, { lobbies: number; players: number }>>;
  /** Ends the wait for another process that may be the holder. */
  signal: AbortSignal | undefined;
}

/**
 * Opens the machines that run game servers, and makes this process the holder of its own. Throws StartError if its data
 * directory is a copy of one that is in use.
 */
export async function openMachines(dependencies: Dependencies): Promise<Feature<Machines>> {
  const { data, datacenter_id, has_cluster, identities, countServers, countLobbies, signal } = dependencies;
  const { node_id, path, place } = data;

  async function loads(): Promise<Map<string, Load>> {
    const [servers, lobbies] = await Promise.all([countServers(), countLobbies()]);
    return new Map([...servers].map(([id, count]) => [id, { servers: count, ...(lobbies.get(id) ?? NO_LOBBIES) }]));
  }

  const machines = createMachines({
    ...dependencies,
    own: { node_id, datacenter_id, name: hostname(), place, data_directory: path, has_cluster },
    loads,
    requireAdministrator: (caller) => identities.requireAdministrator(caller),
  });
  await machines.register(signal);
  return { api: machines, routes: machineRoutes(machines), startWork: machines.startWork };
}
