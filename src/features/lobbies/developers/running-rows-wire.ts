import { type Static, Type } from '@sinclair/typebox';
import { oneOf, Timestamp, Uuid } from '../../../platform/http/shapes.ts';
import { Publicity } from '../wire.ts';
import { ORDERS, STATUSES, statusOf, type Window } from './running-list.ts';
import type { RunningRow } from './running-rows-store.ts';

const NAME_LENGTH_MAX = 64;
const ID_LENGTH_MAX = 36;
const FROM_MAX = 1_000_000;
const COUNT_MAX = 200;
const COUNT_DEFAULT = 50;

const StatusOfLobby = oneOf('LobbyStatus', STATUSES, { description: 'starting: it is not ready yet.' });

export const RowsQuery = Type.Object({
  game_mode_id: Type.Optional(Type.String({ maxLength: NAME_LENGTH_MAX })),
  region_id: Type.Optional(Type.String({ maxLength: NAME_LENGTH_MAX, description: 'Slug of the datacenter.' })),
  version_id: Type.Optional(Uuid),
  other_than_version_id: Type.Optional(Uuid),
  id: Type.Optional(
    Type.String({ maxLength: ID_LENGTH_MAX, description: 'A part of the id of the lobby or of its server.' }),
  ),
  status: Type.Optional(StatusOfLobby),
  is_empty: Type.Optional(Type.Boolean({ description: 'Only lobbies without players, or only those with players.' })),
  is_full: Type.Optional(
    Type.Boolean({ description: 'Only lobbies whose players have reached max_players_normal, or only the others.' }),
  ),
  order: Type.Optional(oneOf('LobbyOrder', ORDERS, { description: 'By default the newest first.' })),
  from: Type.Optional(
    Type.Integer({ minimum: 0, maximum: FROM_MAX, description: 'How many lobbies to leave out at the beginning.' }),
  ),
  count: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: COUNT_MAX,
      description: `${COUNT_DEFAULT} by default; 0 for the summary only.`,
    }),
  ),
});

const WireRow = Type.Object(
  {
    lobby_id: Uuid,
    server_id: Uuid,
    version_id: Uuid,
    game_mode_id: Type.String(),
    region_id: Type.String({ description: 'Slug of the datacenter.' }),
    create_ts: Timestamp,
    status: StatusOfLobby,
    is_closed: Type.Boolean(),
    publicity: Type.Optional(Publicity),
    max_players_normal: Type.Integer(),
    max_players_direct: Type.Integer(),
    max_players_party: Type.Integer(),
    player_count: Type.Integer({ description: 'Players who have a seat.' }),
    connected_count: Type.Integer({ description: 'Players who have connected.' }),
  },
  { title: 'RunningLobby' },
);

const Count = Type.Integer({ minimum: 0 });
const TOTAL = { lobbies: Count, players: Count, seats: Count };
const Total = Type.Object(TOTAL, { title: 'LobbyTotal' });

const Summary = Type.Object(
  {
    ...TOTAL,
    empty: Count,
    status: Type.Object({ starting: Count, open: Count, closed: Count }, { title: 'LobbyStatusCounts' }),
    game_modes: Type.Record(Type.String(), Total),
    regions: Type.Record(Type.String(), Total),
    versions: Type.Record(Type.String(), Total),
  },
  { title: 'LobbySummary' },
);

export const RowsAnswer = Type.Object({
  row_id: Type.String({ description: 'The member of a row that identifies it.' }),
  matching: Type.Integer({ description: 'How many lobbies match the filter.' }),
  summary: Summary,
  rows: Type.Optional(Type.Array(WireRow, { description: 'The rows of the window. Absent if there are changes.' })),
  changes: Type.Optional(
    Type.Object(
      {
        removed: Type.Array(Uuid, { description: 'Rows that leave the window.' }),
        placed: Type.Array(Type.Object({ at: Count, row: WireRow }, { title: 'PlacedLobby' }), {
          description: 'Rows that come into the window, change or move, each with its index.',
        }),
      },
      { title: 'LobbyChanges', description: 'What has changed since `watch_index`: see docs/watch.md.' },
    ),
  ),
});

export function toWindow(query: Static<typeof RowsQuery>): Window {
  const { game_mode_id: game_mode, region_id: region, status, is_empty, is_full } = query;
  const { order = 'newest', from = 0, count = COUNT_DEFAULT } = query;
  const [version_id, other_than_version_id, id] = [query.version_id, query.other_than_version_id, query.id].map(
    (text) => text?.toLowerCase(),
  );
  return {
    game_mode,
    region,
    version_id,
    other_than_version_id,
    id,
    status,
    is_empty,
    is_full,
    order,
    from,
    count,
  };
}

export function toWireRow(lobby: RunningRow, connected_count: number): Static<typeof WireRow> {
  const { lobby_id, server_id, version_id, game_mode, region, create_ts, is_closed, publicity, player_count } = lobby;
  const { max_players_normal, max_players_direct, max_players_party } = lobby;
  return {
    lobby_id,
    server_id,
    version_id,
    game_mode_id: game_mode,
    region_id: region,
    create_ts: new Date(create_ts).toISOString(),
    status: statusOf(lobby),
    is_closed,
    ...(publicity && { publicity }),
    max_players_normal,
    max_players_direct,
    max_players_party,
    player_count,
    connected_count,
  };
}
