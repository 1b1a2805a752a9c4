import type { Feature } from '../../platform/feature.ts';
import type { Identities } from '../identities/identities.ts';
import { type Counters, type CountersDependencies, createCounters } from './counters.ts';
import { counterRoutes } from './routes.ts';

interface Dependencies extends Omit<CountersDependencies, 'requireAdministrator'> {
  identities: Pick<Identities, 'requireAdministrator'>;
}

/** Opens the counters of namespaces. */
export function openCounters(dependencies: Dependencies): Feature<Counters> {
  const { identities } = dependencies;
  const counters = createCounters({
    ...dependencies,
    requireAdministrator: (caller) => identities.requireAdministrator(caller),
  });
  return { api: counters, routes: counterRoutes(counters), startWork: (signal) => [counters.startKeeping(signal)] };
}
