import { ServiceError } from '../../platform/errors.ts';
import type { SignedLinks } from '../../platform/objects/links.ts';
import type { Uploads } from '../uploads/uploads.ts';
import type { Builds } from './builds.ts';
import type { BuildScope } from './store.ts';
import type { BuildRow } from './tables.ts';

export const FILE_PATH = '/builds/file';

export interface BuildFilesDependencies {
  builds: Pick<Builds, 'get'>;
  uploads: Pick<Uploads, 'read'>;
  links: SignedLinks;
}

export type BuildFiles = ReturnType<typeof createBuildFiles>;

/**
 * Creates the use cases of the files of complete builds, as they were uploaded. A link needs no token, so a program without
 * access to the storage, such as a container of a cluster, can read a build with it and compare its digest.
 */
export function createBuildFiles({ builds, uploads, links }: BuildFilesDependencies) {
  async function getComplete(scope: BuildScope, build_id: string): Promise<BuildRow> {
    const build = await builds.get(scope, build_id);
    if (!build.complete_ts) throw new ServiceError('BUILDS_BUILD_NOT_COMPLETE', {});
    return build;
  }

  return {
    /** Returns a complete build, and a link to its file, which is valid for an hour. */
    async fileLink(scope: BuildScope, build_id: string): Promise<{ build: BuildRow; url: string }> {
      const build = await getComplete(scope, build_id);
      return { build, url: links.sign(FILE_PATH, { game_id: build.game_id, build_id }) };
    },
    /** Returns the build that a link is for. Throws LINK_INVALID. */
    async linkedBuild(url: string): Promise<BuildRow> {
      const parameters = links.verify(url);
      return await getComplete({ game_id: parameters.get('game_id') ?? '' }, parameters.get('build_id') ?? '');
    },
    readFile: ({ upload_id }: BuildRow) => uploads.read(upload_id, 0),
  };
}
