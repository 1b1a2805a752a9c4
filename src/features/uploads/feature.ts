import type { Feature } from '../../platform/feature.ts';
import { type UploadRoutesDependencies, uploadRoutes } from './routes.ts';
import { createUploads, type Uploads, type UploadsDependencies } from './uploads.ts';

type Dependencies = UploadsDependencies & Omit<UploadRoutesDependencies, 'uploads'>;

/** Opens uploads: files that are sent in parts, for the features that use them. */
export function openUploads(dependencies: Dependencies): Feature<Uploads> {
  const uploads = createUploads(dependencies);
  return {
    api: uploads,
    routes: uploadRoutes({ ...dependencies, uploads }),
    startWork: (signal) => [uploads.startCleaning(signal)],
  };
}
