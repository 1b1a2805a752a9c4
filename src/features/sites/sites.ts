import { LRUCache } from 'lru-cache';
import type { Clock } from '../../platform/clock.ts';
import type { Database } from '../../platform/database/database.ts';
import { ServiceError } from '../../platform/errors.ts';
import type { Watchable } from '../../platform/watch/views.ts';
import { displayNameProblem, LONG_DISPLAY_NAME_BYTES_MAX, refuseProblems } from '../names.ts';
import { topics } from '../topics.ts';
import type { Uploads } from '../uploads/uploads.ts';
import type { PresignedRequest } from '../uploads/wire.ts';
import { checkFiles } from './rules.ts';
import { createSiteFiles, type SiteFile } from './site-files.ts';
import * as store from './store.ts';
import type { SiteRow } from './tables.ts';
import type { PrepareSiteFile } from './wire.ts';

export type { SiteFile } from './site-files.ts';

const REMEMBERED_SITES_MAX = 10_000;

export interface SitesDependencies {
  database: Database;
  clock: Clock;
  uploads: Uploads;
}

export type Sites = ReturnType<typeof createSites>;

/** Creates the use cases of static sites, which developers upload. The feature `cdn` serves them. */
export function createSites({ database, clock, uploads }: SitesDependencies) {
  const site_files = createSiteFiles(uploads.files);
  // Entries stay correct, because a complete site never changes.
  const complete_sites = new LRUCache<string, SiteRow>({ max: REMEMBERED_SITES_MAX });

  uploads.setPurpose('site', {
    async inspect() {},
    complete: (tx, upload_id, now) => store.setComplete(tx, upload_id, now),
  });

  /** The sites of a game. Watchable. */
  const all: Watchable<string, SiteRow[]> = {
    topics: (game_id) => [topics.sitesOf(game_id)],
    read: (game_id) => store.selectSites(database.queries, game_id),
  };

  async function find(game_id: string, site_id: string): Promise<SiteRow | undefined> {
    const key = `${game_id} ${site_id}`;
    const known = complete_sites.get(key);
    if (known) return known;
    const site = await store.selectSite(database.queries, game_id, site_id);
    if (site?.complete_ts) complete_sites.set(key, site);
    return site;
  }

  return {
    all,
    /** Returns whether a game has such a site and its upload is complete. */
    async isComplete(game_id: string, site_id: string): Promise<boolean> {
      return (await find(game_id, site_id))?.complete_ts != null;
    },
    /** Returns a site of a game, from memory if it is complete. */
    find,
    /** Returns the files of a complete site, by path. */
    files: ({ upload_id }: SiteRow): Promise<ReadonlyMap<string, SiteFile>> => site_files.of(upload_id),
    /** Prepares the upload of a site. Throws VALIDATION_ERROR, UPLOAD_INVALID, UPLOAD_TOO_LARGE or GAME_TOO_MANY_SITES. */
    async create(
      game_id: string,
      { display_name, files }: { display_name: string; files: PrepareSiteFile[] },
    ): Promise<{ site_id: string; upload_id: string; presigned_requests: PresignedRequest[] }> {
      const problem = displayNameProblem(display_name, LONG_DISPLAY_NAME_BYTES_MAX);
      refuseProblems(problem ? [{ path: ['display-name', problem] }] : []);
      checkFiles(files);
      const site_id = crypto.randomUUID();
      const { upload_id, unsent } = await database.transact(async (tx) => {
        const upload = { game_id, kind: 'site', is_multipart: true } as const;
        const prepared = await uploads.prepare(tx, upload, files);
        const content_length = files.reduce((sum, file) => sum + file.content_length, 0);
        const times = { create_ts: clock.now(), complete_ts: null };
        const { upload_id } = prepared;
        const row = { site_id, game_id, upload_id, display_name, content_length, ...times };
        if (!(await store.insertSite(tx, row))) throw new ServiceError('GAME_TOO_MANY_SITES', { max: store.SITES_MAX });
        return prepared;
      });
      return { site_id, upload_id, presigned_requests: await uploads.presign(unsent) };
    },
  };
}
