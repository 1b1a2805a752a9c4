import { type Static, Type } from '@sinclair/typebox';
import { oneOf, Timestamp, Uuid } from '../../../platform/http/shapes.ts';
import { type PlayerRow, REMOVE_REASONS } from '../tables.ts';

const Visit = Type.Object(
  {
    player_id: Uuid,
    create_ts: Type.String({ description: 'When the player got the seat.' }),
    connect_ts: Type.Optional(Timestamp),
    remove_ts: Type.Optional(Type.String({ description: 'When the seat became free; absent while it is taken.' })),
    remove_reason: Type.Optional(
      oneOf('PlayerRemoveReason', REMOVE_REASONS, { description: 'Why the seat became free.' }),
    ),
  },
  { title: 'LobbyVisit' },
);

export const VisitsAnswer = Type.Object({
  visits: Type.Array(Visit, { description: 'In the order in which the players got their seats.' }),
  has_earlier: Type.Boolean({ description: 'Whether more players have left, before these.' }),
});

/** The players who have a seat in a lobby, and the latest of those who had one. */
export interface Visits {
  players: PlayerRow[];
  has_earlier: boolean;
}

export function toVisits({ players, has_earlier }: Visits): Static<typeof VisitsAnswer> {
  return { visits: players.map(toVisit), has_earlier };
}

function toVisit({ player_id, create_ts, connect_ts, remove_ts, remove_reason }: PlayerRow): Static<typeof Visit> {
  return {
    player_id,
    create_ts: create_ts.toISOString(),
    ...(connect_ts && { connect_ts: connect_ts.toISOString() }),
    ...(remove_ts && { remove_ts: remove_ts.toISOString() }),
    ...(remove_reason && { remove_reason }),
  };
}
