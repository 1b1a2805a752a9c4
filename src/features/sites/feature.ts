import type { Feature } from '../../platform/feature.ts';
import { siteRoutes } from './routes.ts';
import { createSites, type Sites, type SitesDependencies } from './sites.ts';

/** Opens sites: uploaded static files. The feature `cdn` serves them. */
export function openSites(dependencies: SitesDependencies): Feature<Sites> {
  const sites = createSites(dependencies);
  return { api: sites, routes: siteRoutes(sites) };
}
