import { ServiceError } from '../../platform/errors.ts';
import type { Tenants } from '../../platform/http/authorization.ts';
import { route, watched } from '../../platform/http/route.ts';
import { Empty } from '../../platform/http/shapes.ts';
import type { Transfers } from '../../platform/http/transfers.ts';
import { averagePerMinute } from '../../platform/limits/limit.ts';
import { watchState } from '../../platform/watch/views.ts';
import type { Uploads } from './uploads.ts';
import { MissingRequestsAnswer, UploadAnswer } from './wire.ts';

/**
 * Limits parts by address. A site has up to 10,000 files and a build as many parts, and several clients may share an
 * address.
 */
const SENDING = averagePerMinute('uploads', 8_000, { counted: 'here' });
/** An answer may have the addresses of 10,000 parts, which take long to sign. */
const LISTING_MISSING = averagePerMinute('uploads-missing', 8);

export interface UploadRoutesDependencies {
  uploads: Uploads;
  transfers: Transfers;
  /** Authorizes a caller of a game. Throws GAME_NOT_FOUND. */
  authorize: Tenants['authorize'];
}

export function uploadRoutes({ uploads, transfers, authorize }: UploadRoutesDependencies) {
  return [
    route(
      'PUT',
      '/uploads/:upload_id',
      {
        operation: 'sendUpload',
        summary:
          'Uploads a file, or a part of it. The address comes from the request that prepared the upload, or from the one for its missing parts.',
        // The signature in the URL authorizes the request.
        allow: 'anyone',
        body_kind: 'stream',
        limit: SENDING,
        response: Empty,
        errors: [
          'UPLOAD_SIGNATURE_INVALID',
          'UPLOAD_LENGTH_MISMATCH',
          'UPLOAD_INVALID',
          'UPLOAD_NOT_FOUND',
          'UPLOAD_BUSY',
          'OBJECTS_UNAVAILABLE',
          'TOO_MANY_TRANSFERS',
          'TRANSFERS_BUSY',
        ],
      },
      async ({ request, address }) => {
        const end = transfers.begin(address, request.signal);
        try {
          await uploads.receive(request.url, request.body ?? new ReadableStream({ start: (body) => body.close() }));
        } finally {
          end();
        }
        return {};
      },
    ),
    watched(
      '/cloud/games/:game_id/uploads/:upload_id',
      {
        operation: 'getUpload',
        summary: 'Returns an upload and its progress.',
        allow: ['identity', 'cloud'],
        access: 'read',
        response: UploadAnswer,
        errors: ['GAME_NOT_FOUND', 'UPLOAD_NOT_FOUND'],
      },
      ({ params }) => watchState(uploads.upload, params, (upload) => ({ upload })),
    ),
    route(
      'GET',
      '/cloud/games/:game_id/uploads/:upload_id/requests',
      {
        operation: 'listMissingUploads',
        summary: 'Returns the requests that send what is missing of an upload that was interrupted.',
        allow: ['identity', 'cloud'],
        access: 'write',
        limit: LISTING_MISSING,
        response: MissingRequestsAnswer,
        errors: ['GAME_NOT_FOUND', 'UPLOAD_NOT_FOUND'],
      },
      async ({ params }) => ({
        presigned_requests: await uploads.missingRequests(params.game_id, params.upload_id),
      }),
    ),
    route(
      'POST',
      '/cloud/uploads/:upload_id/complete',
      {
        operation: 'completeUpload',
        summary: 'Completes an upload whose files have been sent.',
        allow: ['identity', 'cloud'],
        response: Empty,
        errors: [
          'UPLOAD_NOT_FOUND',
          'UPLOAD_INCOMPLETE',
          'UPLOAD_BUSY',
          'BUILDS_BUILD_INVALID',
          'BUILDS_KIND_NOT_AVAILABLE',
          'OBJECTS_UNAVAILABLE',
        ],
      },
      async ({ caller, params }) => {
        const { game_id, kind } = await uploads.get(params.upload_id);
        // Pictures have routes of their own, which also show them.
        if (game_id === null || (kind !== 'build' && kind !== 'site')) throw new ServiceError('UPLOAD_NOT_FOUND', {});
        await authorize(caller, { game_id }, 'write').catch((error: unknown) => {
          const is_foreign = error instanceof ServiceError && error.code === 'GAME_NOT_FOUND';
          throw is_foreign ? new ServiceError('UPLOAD_NOT_FOUND', {}) : error;
        });
        await uploads.complete(params.upload_id);
        return {};
      },
    ),
  ];
}
