import type { Feature } from '../../platform/feature.ts';
import { type Counters, type CountersDependencies, createCounters } from './counters.ts';
import { counterRoutes } from './routes.ts';

/** Opens the counters of namespaces. */
export function openCounters(dependencies: CountersDependencies): Feature<Counters> {
  const counters = createCounters(dependencies);
  return { api: counters, routes: counterRoutes(counters), startWork: (signal) => [counters.startKeeping(signal)] };
}
