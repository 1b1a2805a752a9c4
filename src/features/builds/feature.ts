import type { Feature } from '../../platform/feature.ts';
import { type Builds, type BuildsDependencies, createBuilds } from './builds.ts';
import { buildRoutes } from './routes.ts';

/** Opens builds: uploaded game servers. */
export function openBuilds(dependencies: BuildsDependencies): Feature<Builds> {
  const builds = createBuilds(dependencies);
  return { api: builds, routes: buildRoutes(builds) };
}
