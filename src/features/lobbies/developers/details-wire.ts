import { type Static, Type } from '@sinclair/typebox';
import { parseJsonToSendOn } from '../../../platform/http/json.ts';
import { oneOf, Timestamp, Uuid } from '../../../platform/http/shapes.ts';
import { type LobbyRow, type PlayerRow, STOP_REASONS } from '../tables.ts';
import { ClosedTs, Publicity } from '../wire.ts';

const SeatedPlayer = Type.Object(
  {
    player_id: Uuid,
    create_ts: Timestamp,
    seat_deadline_ts: Type.Optional(
      Type.String({
        description: 'When the seat of a player who has not connected is freed; absent until the lobby is ready.',
      }),
    ),
    connect_ts: Type.Optional(Timestamp),
  },
  { title: 'SeatedPlayer' },
);

const LobbyDetails = Type.Object(
  {
    lobby_id: Uuid,
    server_id: Uuid,
    version_id: Uuid,
    game_mode_id: Type.String(),
    create_ts: Timestamp,
    ready_ts: Type.Optional(Timestamp),
    stop_ts: Type.Optional(Timestamp),
    stop_reason: Type.Optional(oneOf('LobbyStopReason', STOP_REASONS, { description: 'Why the lobby stopped.' })),
    is_closed: Type.Boolean(),
    closed_ts: ClosedTs,
    publicity: Type.Optional(Publicity),
    code: Type.Optional(Type.String({ description: 'Players join the running lobby by it.' })),
    max_players_normal: Type.Integer(),
    max_players_direct: Type.Integer(),
    max_players_party: Type.Integer(),
    tags: Type.Record(Type.String(), Type.String()),
    state: Type.Optional(Type.Unknown({ description: 'What its server has set: any JSON.' })),
    players: Type.Array(SeatedPlayer, { description: 'Players with a seat, in the order in which they got it.' }),
  },
  { title: 'LobbyDetails' },
);
export type LobbyDetails = Static<typeof LobbyDetails>;

export const LobbyDetailsAnswer = Type.Object({ lobby: LobbyDetails });

export function toLobbyDetails(lobby: LobbyRow, players: PlayerRow[]): LobbyDetails {
  const { lobby_id, server_id, version_id, game_mode, create_ts, ready_ts, stop_ts, stop_reason, is_closed } = lobby;
  const { closed_ts, publicity, code, tags, state, max_players_normal, max_players_direct, max_players_party } = lobby;
  return {
    lobby_id,
    server_id,
    version_id,
    game_mode_id: game_mode,
    create_ts: create_ts.toISOString(),
    ...(ready_ts && { ready_ts: ready_ts.toISOString() }),
    ...(stop_ts && { stop_ts: stop_ts.toISOString() }),
    ...(stop_reason && { stop_reason }),
    is_closed,
    ...(is_closed && closed_ts && { closed_ts: closed_ts.toISOString() }),
    ...(publicity && { publicity }),
    ...(code !== null && !stop_ts && { code }),
    max_players_normal,
    max_players_direct,
    max_players_party,
    tags,
    ...(state !== null && { state: parseJsonToSendOn(state) }),
    players: players.map(toSeatedPlayer),
  };
}

function toSeatedPlayer({ player_id, create_ts, seat_deadline_ts, connect_ts }: PlayerRow) {
  return {
    player_id,
    create_ts: create_ts.toISOString(),
    ...(seat_deadline_ts && !connect_ts && { seat_deadline_ts: seat_deadline_ts.toISOString() }),
    ...(connect_ts && { connect_ts: connect_ts.toISOString() }),
  };
}
