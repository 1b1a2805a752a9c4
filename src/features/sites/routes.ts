import { route, watched } from '../../platform/http/route.ts';
import { watchState } from '../../platform/watch/views.ts';
import type { Sites } from './sites.ts';
import { CreateSiteAnswer, CreateSiteBody, SitesAnswer, toSiteSummary } from './wire.ts';

const SITES = '/cloud/games/:game_id/cdn/sites';
/** A list of as many files as a site may have, with their digests, has more bytes than other bodies. */
const LIST_BYTES_MAX = 4 * 1024 ** 2;

export function siteRoutes(sites: Sites) {
  return [
    watched(
      SITES,
      {
        operation: 'listSites',
        summary: 'Lists the sites of a game, newest first.',
        allow: ['identity', 'cloud'],
        access: 'read',
        response: SitesAnswer,
        errors: ['GAME_NOT_FOUND'],
      },
      ({ params }) => watchState(sites.all, params.game_id, (rows) => ({ sites: rows.map(toSiteSummary) })),
    ),
    route(
      'POST',
      SITES,
      {
        operation: 'createSite',
        recorded: ['display_name'],
        summary: 'Prepares a site with its files. Send each, then complete the upload.',
        allow: ['identity', 'cloud'],
        access: 'write',
        body: CreateSiteBody,
        body_bytes_max: LIST_BYTES_MAX,
        response: CreateSiteAnswer,
        errors: ['GAME_NOT_FOUND', 'VALIDATION_ERROR', 'UPLOAD_INVALID', 'UPLOAD_TOO_LARGE', 'GAME_TOO_MANY_SITES'],
      },
      async ({ params, body }) => await sites.create(params.game_id, body),
    ),
  ];
}
