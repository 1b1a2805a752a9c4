import { route } from '../../platform/http/route.ts';
import { Empty } from '../../platform/http/shapes.ts';
import type { Shares } from './shares.ts';
import {
  CreateShareAnswer,
  CreateShareBody,
  LIFETIME_DEFAULT_MS,
  OwnShareAnswer,
  SharesAnswer,
  toShare,
  toSharedPlace,
} from './wire.ts';

const SHARES = '/cloud/games/:game_id/namespaces/:namespace_id/shares';
const NOT_FOUND = ['GAME_NOT_FOUND', 'GAME_ENVIRONMENT_NOT_FOUND'] as const;

export function shareRoutes(shares: Shares) {
  return [
    route(
      'POST',
      SHARES,
      {
        operation: 'createShare',
        recorded: ['lobby_id', 'lifetime_ms', 'display_name'],
        summary:
          'Creates a link by which anyone can look at a namespace, or at one lobby, until it expires or is revoked.',
        allow: ['identity', 'cloud'],
        access: 'write',
        body: CreateShareBody,
        response: CreateShareAnswer,
        errors: [...NOT_FOUND, 'MATCHMAKER_LOBBY_NOT_FOUND', 'SHARES_TOO_MANY'],
      },
      async ({ caller, params, body }) => {
        const { lobby_id, lifetime_ms = LIFETIME_DEFAULT_MS, display_name = '' } = body;
        const wanted = { ...params, lobby_id: lobby_id?.toLowerCase(), display_name, lifetime_ms };
        const { row, token, url } = await shares.create(caller, wanted);
        return { share_id: row.share_id, url, token, expire_ts: row.expire_ts.toISOString() };
      },
    ),
    route(
      'GET',
      SHARES,
      {
        operation: 'listShares',
        summary: 'Lists the valid share links of a namespace, newest first.',
        allow: ['identity', 'cloud'],
        access: 'read',
        response: SharesAnswer,
        errors: NOT_FOUND,
      },
      async ({ params }) => ({ shares: (await shares.list(params)).map(toShare) }),
    ),
    route(
      'DELETE',
      `${SHARES}/:share_id`,
      {
        operation: 'revokeShare',
        summary: 'Revokes a share link, also for those who are looking at it.',
        allow: ['identity', 'cloud'],
        access: 'write',
        response: Empty,
        errors: [...NOT_FOUND, 'SHARE_NOT_FOUND'],
      },
      async ({ params }) => {
        await shares.revoke(params.namespace_id, params.share_id);
        return {};
      },
    ),
    route(
      'GET',
      '/cloud/shares/current',
      {
        operation: 'getOwnShare',
        summary: 'Returns what the token of a share link shows, and until when.',
        allow: ['share'],
        response: OwnShareAnswer,
        errors: ['SHARE_NOT_FOUND'],
      },
      async ({ caller }) => ({ share: toSharedPlace(await shares.get(caller.share_id)) }),
    ),
  ];
}
