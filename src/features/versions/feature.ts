import type { Feature } from '../../platform/feature.ts';
import { versionRoutes } from './routes.ts';
import { createVersions, type Versions, type VersionsDependencies } from './versions.ts';

/** Opens versions: configurations of games, which never change. */
export function openVersions(dependencies: VersionsDependencies): Feature<Versions> {
  const versions = createVersions(dependencies);
  return { api: versions, routes: versionRoutes(versions) };
}
