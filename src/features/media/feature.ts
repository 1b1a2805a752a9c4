import type { Feature } from '../../platform/feature.ts';
import { createMedia, type Media, type MediaDependencies } from './media.ts';
import { type MediaRoutesDependencies, mediaRoutes } from './routes.ts';

type Dependencies = MediaDependencies & Omit<MediaRoutesDependencies, 'media'>;

/** Opens media: pictures of games, groups and people. */
export function openMedia(dependencies: Dependencies): Feature<Media> {
  const media = createMedia(dependencies);
  return { api: media, routes: mediaRoutes({ ...dependencies, media }) };
}
