import { type Static, Type } from '@sinclair/typebox';
import { oneOf } from '../../../../platform/http/shapes.ts';
import { SEAT_REQUEST_KINDS } from '../../../seat-request-kinds.ts';
import { CreateBody, JoinBody } from '../../wire.ts';
import { VerificationVerdict } from '../receipts/receipts-wire.ts';

const { game_mode, tags, max_players, players, lobby_config, verification_data } = CreateBody.properties;

export const VerificationTrial = Type.Object({
  game_mode,
  tags,
  max_players,
  players,
  lobby_config,
  verification_data,
  kind: oneOf('VerifiedKind', SEAT_REQUEST_KINDS),
  lobby_id: JoinBody.properties.lobby_id,
});
export type VerificationTrial = Static<typeof VerificationTrial>;

export const VerificationTrialAnswer = Type.Object({ verification: VerificationVerdict });
