import { constants } from 'node:os';
import { type Static, Type } from '@sinclair/typebox';
import { Timestamp, Uuid } from '../../../platform/http/shapes.ts';
import { UNKNOWN_REGION } from '../../datacenters/datacenters.ts';
import type { Outcome } from '../../servers/servers.ts';
import type { LobbyWithoutState } from '../store.ts';
import { ClosedTs } from '../wire.ts';
import { gameModeUuid } from './game-mode-uuid.ts';

const LiveLobby = Type.Object(
  {
    lobby_id: Uuid,
    lobby_group_id: Uuid,
    lobby_group_name_id: Type.String({ description: 'Name id of the game mode.' }),
    region_id: Uuid,
    server_id: Uuid,
    create_ts: Timestamp,
    is_ready: Type.Boolean(),
    is_idle: Type.Boolean(),
    is_closed: Type.Boolean(),
    closed_ts: ClosedTs,
    is_outdated: Type.Boolean(),
    max_players_normal: Type.Integer(),
    max_players_direct: Type.Integer(),
    max_players_party: Type.Integer(),
    total_player_count: Type.Integer({ description: 'Players who have a seat.' }),
    registered_player_count: Type.Integer({ description: 'Players who have connected.' }),
  },
  { title: 'LiveLobby' },
);
export type LiveLobby = Static<typeof LiveLobby>;
export const LiveAnswer = Type.Object({ lobbies: Type.Array(LiveLobby) });

const HistoryLobby = Type.Object(
  {
    lobby_id: Uuid,
    namespace_id: Uuid,
    lobby_group_name_id: Type.String(),
    region_id: Uuid,
    create_ts: Timestamp,
    start_ts: Type.Optional(Timestamp),
    ready_ts: Type.Optional(Timestamp),
    status: Type.Object({
      running: Type.Object(
        {},
        { description: 'Always present, as in the reference API. See whether "stopped" is present.' },
      ),
      stopped: Type.Optional(
        Type.Object({ stop_ts: Timestamp, failed: Type.Boolean(), exit_code: Type.Integer() }, { title: 'LobbyStop' }),
      ),
    }),
  },
  { title: 'HistoryLobby' },
);
export type HistoryLobby = Static<typeof HistoryLobby>;

const TIME_LENGTH_MAX = 40;
export const BeforeCreateTs = Type.Optional(
  Type.String({ maxLength: TIME_LENGTH_MAX, description: 'RFC 3339. Returns only those created before.' }),
);

export const HistoryQuery = Type.Object({ before_create_ts: BeforeCreateTs });
export const HistoryAnswer = Type.Object({ lobbies: Type.Array(HistoryLobby) });
export const HistoryLobbyAnswer = Type.Object({
  lobby: HistoryLobby,
  stdout_presigned_urls: Type.Array(Type.String()),
  stderr_presigned_urls: Type.Array(Type.String()),
  perf_lists: Type.Array(Type.Unknown()),
});
export const RemoveAnswer = Type.Object({ did_remove: Type.Boolean() });

export function toLiveLobby(
  lobby: LobbyWithoutState & { connected_count: number },
  datacenter_ids: ReadonlyMap<string, string>,
  current_version_id: string,
): LiveLobby {
  const { lobby_id, game_mode, region, server_id, version_id, create_ts, is_closed, player_count, connected_count } =
    lobby;
  const { closed_ts, max_players_normal, max_players_direct, max_players_party } = lobby;
  return {
    lobby_id,
    lobby_group_id: gameModeUuid(version_id, game_mode),
    lobby_group_name_id: game_mode,
    region_id: datacenter_ids.get(region) ?? UNKNOWN_REGION,
    server_id,
    create_ts: create_ts.toISOString(),
    is_ready: lobby.ready_ts !== null,
    is_idle: player_count === 0,
    is_closed,
    ...(is_closed && closed_ts && { closed_ts: closed_ts.toISOString() }),
    is_outdated: version_id !== current_version_id,
    max_players_normal,
    max_players_direct,
    max_players_party,
    total_player_count: player_count,
    registered_player_count: connected_count,
  };
}

export function toHistoryLobby(
  lobby: LobbyWithoutState,
  outcome: Outcome | undefined,
  datacenter_ids: ReadonlyMap<string, string>,
): HistoryLobby {
  const { lobby_id, namespace_id, game_mode, region, create_ts, ready_ts, stop_ts } = lobby;

  return {
    lobby_id,
    namespace_id,
    lobby_group_name_id: game_mode,
    region_id: datacenter_ids.get(region) ?? UNKNOWN_REGION,
    create_ts: create_ts.toISOString(),
    ...(outcome?.started_at ? { start_ts: outcome.started_at.toISOString() } : {}),
    ...(ready_ts ? { ready_ts: ready_ts.toISOString() } : {}),
    status: {
      running: {},
      ...(stop_ts
        ? {
            stopped: {
              stop_ts: stop_ts.toISOString(),
              failed: hasFailed(lobby, outcome),
              exit_code: exitCodeOf(outcome),
            },
          }
        : {}),
    },
  };
}

/**
 * Returns whether a lobby failed: it was not ready in time, its server failed, or its server ended by itself with an exit
 * code other than 0.
 */
function hasFailed({ stop_reason }: LobbyWithoutState, outcome: Outcome | undefined): boolean {
  if (stop_reason === 'not_ready_in_time' || (outcome?.failure ?? null) !== null) return true;
  return stop_reason === 'server_ended' && exitCodeOf(outcome) !== 0;
}

/** Returns the exit code as a shell reports it: 128 + n after signal n. */
function exitCodeOf(outcome: Outcome | undefined): number {
  const signal = outcome?.exit_signal;
  if (signal) return 128 + (Object.entries(constants.signals).find(([name]) => name === signal)?.[1] ?? 0);
  return outcome?.exit_code ?? 0;
}
