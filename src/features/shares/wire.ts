import { type Static, Type } from '@sinclair/typebox';
import { Timestamp, Uuid } from '../../platform/http/shapes.ts';
import type { ShareRow } from './tables.ts';

const NAME_LENGTH_MAX = 64;
const LIFETIME_MIN_MS = 60_000;
const LIFETIME_MAX_MS = 30 * 24 * 3_600_000;
export const LIFETIME_DEFAULT_MS = 7 * 24 * 3_600_000;

const SharedPlace = {
  game_id: Uuid,
  namespace_id: Uuid,
  lobby_id: Type.Optional(Type.String({ format: 'uuid', description: 'The only lobby to see, if it is one lobby.' })),
  expire_ts: Timestamp,
};

export const CreateShareBody = Type.Object({
  lobby_id: Type.Optional(
    Type.String({ format: 'uuid', description: 'The only lobby to see; by default the whole namespace.' }),
  ),
  lifetime_ms: Type.Optional(
    Type.Integer({
      minimum: LIFETIME_MIN_MS,
      maximum: LIFETIME_MAX_MS,
      description: 'How long the link is valid: 7 days by default, 30 at most.',
    }),
  ),
  display_name: Type.Optional(
    Type.String({ maxLength: NAME_LENGTH_MAX, description: 'What the link is for, to recognize it in the list.' }),
  ),
});

export const CreateShareAnswer = Type.Object({
  share_id: Uuid,
  url: Type.String({ description: 'The page to share. The token is after `#`, so it reaches no log of a server.' }),
  token: Type.String({ description: 'Shown only now.' }),
  expire_ts: Timestamp,
});

const Share = Type.Object(
  { share_id: Uuid, ...SharedPlace, display_name: Type.String(), create_ts: Timestamp },
  { title: 'Share' },
);
export const SharesAnswer = Type.Object({ shares: Type.Array(Share) });
export const OwnShareAnswer = Type.Object({ share: Type.Object(SharedPlace, { title: 'SharedPlace' }) });

export function toShare(row: ShareRow): Static<typeof Share> {
  const { share_id, display_name, create_ts } = row;
  return { share_id, ...toSharedPlace(row), display_name, create_ts: create_ts.toISOString() };
}

export function toSharedPlace({
  game_id,
  namespace_id,
  lobby_id,
  expire_ts,
}: ShareRow): Static<typeof OwnShareAnswer>['share'] {
  return { game_id, namespace_id, ...(lobby_id !== null && { lobby_id }), expire_ts: expire_ts.toISOString() };
}
