import type { Feature } from '../../platform/feature.ts';
import { VERSION } from '../../platform/version.ts';
import { type BootstrapDependencies, type BootstrapResult, bootstrap } from './bootstrap.ts';
import { bootstrapRoutes } from './routes.ts';
import type { ServiceDescription } from './wire.ts';

/** Creates what a new service needs, and opens the routes that describe the service and show the demo. */
export async function openBootstrap(
  dependencies: BootstrapDependencies & Omit<ServiceDescription, 'version'>,
): Promise<Feature<BootstrapResult>> {
  const result = await bootstrap(dependencies);
  const { demo } = result;
  return { api: result, routes: bootstrapRoutes({ ...dependencies, version: VERSION, demo }) };
}
