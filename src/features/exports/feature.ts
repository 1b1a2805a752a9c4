import type { Feature } from '../../platform/feature.ts';
import { createExports, type Exports, type ExportsDependencies } from './exports.ts';
import { exportRoutes } from './routes.ts';

/** Opens exports: tables as CSV, logs also as text. */
export function openExports(dependencies: ExportsDependencies): Feature<Exports> {
  const exports = createExports(dependencies);
  return { api: exports, routes: exportRoutes(exports) };
}
