import type { Feature } from '../../platform/feature.ts';
import { createHub, type Hub, type HubDependencies } from './hub.ts';
import { pageRoutes } from './page-routes.ts';
import { sessionRoutes } from './session-routes.ts';

/** Opens the hub: its pages, and the sessions of the browsers that show them. */
export function openHub(dependencies: HubDependencies): Feature<Hub> {
  const hub = createHub(dependencies);
  return { api: hub, routes: [...sessionRoutes(hub, dependencies), ...pageRoutes()] };
}
