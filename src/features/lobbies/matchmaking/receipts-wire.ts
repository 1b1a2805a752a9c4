import { type Static, Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { oneOf, Timestamp, Uuid } from '../../../platform/http/shapes.ts';
import { CaptchaDecision } from '../../captcha/wire.ts';

/** Why a lobby was passed over. */
export const PASSED_OVER = ['closed', 'private', 'full', 'tags', 'awaited', 'less_full'] as const;

const Considered = Type.Object(
  {
    lobby_id: Uuid,
    game_mode_id: Type.String(),
    region_id: Type.String(),
    player_count: Type.Integer({ description: 'Seats taken when it was looked at.' }),
    passed_over: Type.Optional(
      oneOf('PassedOver', PASSED_OVER, {
        description:
          'The one reason; not there for the lobby that was chosen. "awaited": others wait for it who were there before.',
      }),
    ),
  },
  { title: 'ConsideredLobby' },
);
export type Considered = Static<typeof Considered>;

const Verdict = Type.Object(
  {
    game_mode_id: Type.String(),
    lobby_id: Type.Optional(
      Type.String({
        description: 'The lobby of the planned seat; not there when it was to be created, or was not ready.',
      }),
    ),
    is_accepted: Type.Boolean(),
    status: Type.Optional(Type.Integer({ description: 'Of the answer.' })),
    failure: Type.Optional(Type.String({ description: 'Why there was no answer: "timeout", for one.' })),
  },
  { title: 'VerificationVerdict', description: 'What external verification said, where the game mode wants it.' },
);

const Stages = Type.Object(
  {
    checked: Type.Optional(Type.Number({ description: 'Seen to be allowed, against the version.' })),
    captcha: Type.Optional(Type.Number({ description: 'The captcha was settled, if there had to be one.' })),
    verified: Type.Optional(Type.Number({ description: 'External verification had its answer, or none.' })),
    queued: Type.Optional(Type.Number({ description: 'It began to wait for its turn.' })),
    decided: Type.Optional(Type.Number({ description: 'The round began that decided it.' })),
    seated: Type.Optional(Type.Number({ description: 'The seats were committed.' })),
    ready: Type.Optional(Type.Number({ description: 'The lobby took players.' })),
    answered: Type.Number(),
  },
  {
    title: 'ReceiptStages',
    description:
      'Milliseconds from the beginning of the request; in order, unless the namespace got another version meanwhile.',
  },
);

/** Everything that led to an answer. */
export const Receipt = Type.Object(
  {
    ray_id: Uuid,
    kind: oneOf('ReceiptKind', ['find', 'join', 'create']),
    create_ts: Timestamp,
    version_id: Uuid,
    request: Type.Object(
      {
        game_modes: Type.Optional(Type.Array(Type.String())),
        regions: Type.Optional(
          Type.Array(Type.String(), {
            description: 'Those that were searched, in order; of a refused one, those that it named.',
          }),
        ),
        tags: Type.Optional(Type.Record(Type.String(), Type.String())),
        lobby_id: Type.Optional(Uuid),
        max_players: Type.Optional(Type.Integer()),
        creates: Type.Optional(Type.Boolean({ description: 'Whether a lobby was to be made if none had a place.' })),
        players: Type.Integer(),
        wait_ms: Type.Optional(Type.Integer({ description: 'How long it was ready to wait for its turn.' })),
      },
      { title: 'ReceiptRequest', description: 'What was asked for, without who asked.' },
    ),
    captcha: Type.Optional(CaptchaDecision),
    considered: Type.Array(Considered, {
      description: 'Lobbies that it might have come to, the chosen one first; at most 16.',
    }),
    verification: Type.Optional(Verdict),
    rounds: Type.Integer({ description: 'How often it was decided: again after each lost race.' }),
    outcome: Type.Object(
      {
        lobby_id: Type.Optional(Uuid),
        is_new: Type.Optional(Type.Boolean()),
        code: Type.Optional(Type.String({ description: 'The error that was answered.' })),
      },
      { title: 'ReceiptOutcome' },
    ),
    stages_ms: Stages,
  },
  { title: 'Receipt' },
);
export type Receipt = Static<typeof Receipt>;

export const ReceiptAnswer = Type.Object({ receipt: Receipt });
export const ReceiptsAnswer = Type.Object({ receipts: Type.Array(Receipt) });

/** A receipt as it was kept. */
export function toReceipt({ receipt }: { receipt: Record<string, unknown> }): Receipt {
  return Value.Decode(Receipt, receipt);
}
