import { parseJsonToSendOn } from '../../platform/http/json.ts';
import type { Coordinates } from '../coordinates.ts';
import type { SeatRequestKind } from '../seat-request-kinds.ts';

/** A lobby in a verification request. */
export interface PayloadLobby {
  lobby_id: string;
  /** Id of the datacenter, as in `SERVICE_REGION_ID` and exports. */
  region_id: string;
  /** Slug of the datacenter. */
  region: string;
  create_ts: Date;
  is_closed: boolean;
}

/** The seats that a verification request asks about. */
export interface SeatsToVerify {
  kind: SeatRequestKind;
  namespace_id: string;
  /** The game mode, as `SERVICE_GAME_MODE_ID` and exports name it. */
  game_mode_id: string;
  /** Name id of the game mode that the player will play. */
  game_mode: string;
  /** The lobby of the seats, if it is ready. */
  lobby: PayloadLobby | undefined;
  /** The state that the lobby of the seats has set, also before it is ready: any JSON as text. */
  state: string | undefined;
  /** The wanted configuration of a lobby to create: any JSON as text. */
  lobby_config: string | undefined;
  tags: Record<string, string>;
  max_players: number | undefined;
  /** Number of players in the request. */
  players: number;
  /** Any JSON from the client. */
  verification_data: unknown;
  client: { address: string; user_agent: string | null; coordinates: Coordinates | undefined };
}

/** The body of a verification request (specification: Events). */
export interface VerificationPayload {
  verification_data: unknown;
  game: {
    namespace_id: string;
    game_mode_id: string;
    game_mode_name_id: string;
    lobby: {
      lobby_id: string;
      region_id: string;
      region_name_id: string;
      /** An HTTP date: `Thu, 01 Jan 2026 00:00:00 GMT`. */
      create_ts: string;
      is_closed: boolean;
    } | null;
    state: unknown;
    config: unknown;
    tags: Record<string, string>;
    dynamic_max_players: number | null;
  };
  /** The client by its address. All players of a request have the same one. */
  clients: Record<string, { user_agent: string | null; latitude: number | null; longitude: number | null }>;
  join_kind: 'normal' | 'party';
  kind: SeatsToVerify['kind'];
}

/** Builds the body of a verification request. */
export function toPayload(asked: SeatsToVerify): VerificationPayload {
  const { kind, namespace_id, game_mode, lobby, lobby_config, tags, client } = asked;
  const { address, user_agent, coordinates } = client;
  return {
    verification_data: asked.verification_data ?? null,
    game: {
      namespace_id,
      game_mode_id: asked.game_mode_id,
      game_mode_name_id: game_mode,
      lobby: lobby ? toLobby(lobby) : null,
      state: parse(asked.state),
      config: parse(lobby_config),
      tags,
      dynamic_max_players: asked.max_players ?? null,
    },
    clients: {
      [address]: {
        user_agent,
        latitude: coordinates?.latitude ?? null,
        longitude: coordinates?.longitude ?? null,
      },
    },
    join_kind: asked.players > 1 ? 'party' : 'normal',
    kind,
  };
}

function toLobby({
  lobby_id,
  region_id,
  region,
  create_ts,
  is_closed,
}: PayloadLobby): VerificationPayload['game']['lobby'] {
  return { lobby_id, region_id, region_name_id: region, create_ts: create_ts.toUTCString(), is_closed };
}

function parse(json: string | undefined): unknown {
  return json === undefined ? null : parseJsonToSendOn(json);
}
