import { type Static, Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { oneOf, Timestamp, Uuid } from '../../../../platform/http/shapes.ts';
import { CaptchaDecision } from '../../../captcha/wire.ts';
import { OutboundExchange } from '../../../outbound-exchange.ts';
import { SEAT_REQUEST_KINDS } from '../../../seat-request-kinds.ts';
import { BeforeCreateTs } from '../../developers/developer-wire.ts';
import { Publicity } from '../../wire.ts';

/** Reasons why a lobby was passed over. */
export const PASSED_OVER = ['closed', 'private', 'full', 'tags', 'awaited', 'machine', 'less_full'] as const;

const Candidate = Type.Object(
  {
    lobby_id: Uuid,
    game_mode_id: Type.String(),
    region_id: Type.String(),
    player_count: Type.Integer({ description: 'Seats taken at that time.' }),
    passed_over: Type.Optional(
      oneOf('PassedOver', PASSED_OVER, {
        description:
          'Why the lobby was not chosen; absent for the chosen one. "awaited": it is reserved for finds that came earlier. "machine": its machine is being drained, or does not answer.',
      }),
    ),
  },
  { title: 'ConsideredLobby' },
);
export type Candidate = Static<typeof Candidate>;

export const VerificationVerdict = Type.Object(
  {
    game_mode_id: Type.String(),
    lobby_id: Type.Optional(
      Type.String({
        description: 'The lobby of the planned seat; absent if it was not ready or did not exist yet.',
      }),
    ),
    is_accepted: Type.Boolean(),
    status: Type.Optional(Type.Integer({ description: 'HTTP status of the answer.' })),
    failure: Type.Optional(Type.String({ description: 'Why there was no answer, for example "timeout".' })),
    exchange: Type.Optional(OutboundExchange),
  },
  { title: 'VerificationVerdict', description: 'The result of external verification, if the game mode requires it.' },
);

const Stages = Type.Object(
  {
    checked: Type.Optional(Type.Number({ description: 'The request was checked against the version.' })),
    captcha: Type.Optional(Type.Number({ description: 'The captcha was checked.' })),
    verified: Type.Optional(Type.Number({ description: 'External verification answered, or failed.' })),
    queued: Type.Optional(Type.Number({ description: 'The find entered the queue.' })),
    decided: Type.Optional(Type.Number({ description: 'The round that decided the request began.' })),
    seated: Type.Optional(Type.Number({ description: 'The seats were committed.' })),
    ready: Type.Optional(Type.Number({ description: 'The lobby was ready.' })),
    answered: Type.Number(),
  },
  {
    title: 'ReceiptStages',
    description:
      'Milliseconds since the beginning of the request. In order, unless the namespace moved to another version meanwhile.',
  },
);

/** Explains the answer to a request for seats. */
export const Receipt = Type.Object(
  {
    ray_id: Uuid,
    kind: oneOf('ReceiptKind', SEAT_REQUEST_KINDS),
    create_ts: Timestamp,
    version_id: Uuid,
    request: Type.Object(
      {
        game_modes: Type.Optional(Type.Array(Type.String())),
        regions: Type.Optional(
          Type.Array(Type.String(), {
            description:
              'The searched regions, in order; those that the request named if it was refused before the search.',
          }),
        ),
        tags: Type.Optional(Type.Record(Type.String(), Type.String())),
        lobby_id: Type.Optional(Uuid),
        max_players: Type.Optional(Type.Integer()),
        publicity: Type.Optional(Publicity),
        creates: Type.Optional(Type.Boolean({ description: 'Whether to create a lobby if none had a free seat.' })),
        players: Type.Integer(),
        wait_ms: Type.Optional(Type.Integer({ description: 'How long the find could wait for its turn.' })),
      },
      { title: 'ReceiptRequest', description: 'The request, without the address or identity of its client.' },
    ),
    captcha: Type.Optional(CaptchaDecision),
    considered: Type.Array(Candidate, {
      description: 'Up to 16 lobbies that were considered, the chosen one first.',
    }),
    verification: Type.Optional(VerificationVerdict),
    rounds: Type.Integer({
      description:
        'Number of rounds that decided the request: 1, and 1 more for each time that it had to be decided again.',
    }),
    outcome: Type.Object(
      {
        lobby_id: Type.Optional(Uuid),
        is_new: Type.Optional(Type.Boolean()),
        code: Type.Optional(Type.String({ description: 'The code of the error.' })),
      },
      { title: 'ReceiptOutcome' },
    ),
    stages_ms: Stages,
  },
  { title: 'Receipt' },
);
export type Receipt = Static<typeof Receipt>;

export const ReceiptsQuery = Type.Object({
  before_create_ts: BeforeCreateTs,
  is_refused: Type.Optional(Type.Boolean({ description: 'Whether to return only those of refused requests.' })),
  code: Type.Optional(Type.String({ maxLength: 100, description: 'Returns only those refused with this error code.' })),
});
export const ReceiptAnswer = Type.Object({ receipt: Receipt });
export const ReceiptsAnswer = Type.Object({ receipts: Type.Array(Receipt) });

/** Returns a stored receipt. */
export function toReceipt({ receipt }: { receipt: Record<string, unknown> }): Receipt {
  return Value.Decode(Receipt, receipt);
}
