import type { Feature } from '../../platform/feature.ts';
import { createNamespaces, type Namespaces, type NamespacesDependencies } from './namespaces.ts';
import { type NamespaceRoutesDependencies, namespaceRoutes } from './routes.ts';
import { namespaceSettingsRoutes } from './settings-routes.ts';

type Dependencies = NamespacesDependencies & Omit<NamespaceRoutesDependencies, 'namespaces'>;

/** Opens namespaces: the environments of games, each on one version. */
export function openNamespaces(dependencies: Dependencies): Feature<Namespaces> {
  const namespaces = createNamespaces(dependencies);
  return {
    api: namespaces,
    routes: [...namespaceRoutes({ ...dependencies, namespaces }), ...namespaceSettingsRoutes(namespaces)],
  };
}
