import type { Feature } from '../../platform/feature.ts';
import { createMachines, type Machines, type MachinesDependencies } from './machines.ts';
import { machineRoutes } from './routes.ts';

interface Options extends MachinesDependencies {
  /** Ends the wait for another process that may be the holder. */
  signal: AbortSignal | undefined;
}

/**
 * Opens the machines that run game servers, and makes this process the holder of its own. Throws StartError if its data
 * directory is a copy of one that is in use.
 */
export async function openMachines({ signal, ...dependencies }: Options): Promise<Feature<Machines>> {
  const machines = createMachines(dependencies);
  await machines.register(signal);
  return { api: machines, routes: machineRoutes(machines), startWork: machines.startWork };
}
