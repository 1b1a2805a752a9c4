import type { Feature } from '../../platform/feature.ts';
import { createDatacenters, type Datacenters, type DatacentersDependencies } from './datacenters.ts';
import { datacenterRoutes } from './routes.ts';

/** Opens datacenters: the places where game servers can run. */
export function openDatacenters(dependencies: DatacentersDependencies): Feature<Datacenters> {
  const datacenters = createDatacenters(dependencies);
  return { api: datacenters, routes: datacenterRoutes(datacenters) };
}
