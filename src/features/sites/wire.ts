import { type Static, Type } from '@sinclair/typebox';
import { Text, Timestamp, U64, Uuid } from '../../platform/http/shapes.ts';
import { PrepareFile, PresignedRequest } from '../uploads/wire.ts';
import type { SiteRow } from './tables.ts';

/** Specification: CDN site summary. */
const SiteSummary = Type.Object(
  {
    site_id: Uuid,
    upload_id: Uuid,
    display_name: Type.String(),
    create_ts: Timestamp,
    content_length: U64,
    complete: Type.Boolean(),
  },
  { title: 'Site' },
);
export const SitesAnswer = Type.Object({ sites: Type.Array(SiteSummary) });

/** More than the rules allow, so that their error can name the limit. */
const LISTED_FILES_MAX = 16_384;

const PrepareSiteFile = Type.Object(
  {
    ...PrepareFile.properties,
    sha256: Type.Optional(
      Type.String({
        minLength: 64,
        maxLength: 64,
        description:
          'SHA-256 digest of the file in lower-case hexadecimal digits; ignored above 100 MiB. A file of an earlier site of the game with the same digest is used again, and needs no request.',
      }),
    ),
  },
  { title: 'PrepareSiteFile' },
);
export type PrepareSiteFile = Static<typeof PrepareSiteFile>;

export const CreateSiteBody = Type.Object({
  display_name: Text,
  files: Type.Array(PrepareSiteFile, { maxItems: LISTED_FILES_MAX }),
});
export const CreateSiteAnswer = Type.Object({
  site_id: Uuid,
  upload_id: Uuid,
  presigned_requests: Type.Array(PresignedRequest),
});

export function toSiteSummary(row: SiteRow): Static<typeof SiteSummary> {
  const { site_id, upload_id, display_name, create_ts, content_length, complete_ts } = row;
  return {
    site_id,
    upload_id,
    display_name,
    create_ts: create_ts.toISOString(),
    content_length,
    complete: complete_ts !== null,
  };
}
