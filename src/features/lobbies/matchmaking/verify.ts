import type { Database } from '../../../platform/database/database.ts';
import type { Patience } from '../../../platform/http/time-limits.ts';
import type { Soon } from '../../../platform/soon.ts';
import { type Datacenters, UNKNOWN_REGION } from '../../datacenters/datacenters.ts';
import { refuseUnverified, type SeenLobby, type Verification } from '../../verification/verification.ts';
import { type ActionConfig, type GameModeSettings, verificationOf } from '../../versions/versions.ts';
import { lobbyStopped } from '../refusals.ts';
import * as store from '../store.ts';
import type { LobbyRow } from '../tables.ts';
import type { CreateBody, FindBody, JoinBody } from '../wire.ts';
import type { Atlas } from './lobby-cache.ts';
import { findSeat } from './planner.ts';
import type { Draft } from './receipts.ts';
import { checkFind, type NewLobby, type Search } from './requests.ts';

/** Who asks for seats, and where. */
export interface Verified {
  namespace_id: string;
  version_id: string;
  address: string;
  /** The header of that name; null without it. */
  readUserAgent(): string | null;
  ray_id: string;
  patience: Patience;
  draft: Draft | undefined;
}

interface VerifyingDependencies {
  database: Database;
  atlas: Atlas;
  datacenters: Datacenters;
  verification: Verification;
}

type Modes = ReadonlyMap<string, GameModeSettings>;

export type Verifying = ReturnType<typeof createVerifying>;

/**
 * Has requests for seats verified where their game mode wants it: by one request, before anything is held or made for them
 * (specification: external verification). All throw MATCHMAKER_VERIFICATION_FAILED and MATCHMAKER_VERIFICATION_REQUEST_FAILED.
 */
export function createVerifying({ database, atlas, datacenters, verification }: VerifyingDependencies) {
  /** Where a find would be seated at this moment. */
  async function choose(place: Verified, body: FindBody, search: Search): Promise<LobbyRow | undefined> {
    const others = Array.from({ length: (body.players ?? 1) - 1 }, () => '');
    const request = { version_id: place.version_id, search, player_id: '', others };
    for (const is_fresh of [false, true]) {
      const open = findSeat(request, await atlas.open(place.namespace_id, { is_fresh }));
      const lobby = open && (await store.selectLobby(database.queries, open.lobby_id));
      if (lobby && !lobby.stop_ts && !lobby.is_closed) return lobby;
    }
    return undefined;
  }

  async function ask(place: Verified, action: ActionConfig, asked: Asked): Promise<void> {
    const config = verificationOf(action);
    if (!config) return;
    const { namespace_id, address, ray_id, patience, draft } = place;
    const { body, lobby, ...others } = asked;
    draft?.reach('checked');
    const verdict = await verification.ask({
      ray_id,
      config,
      signal: patience.signal,
      asked: {
        ...others,
        namespace_id,
        lobby: lobby?.ready_ts ? toSeen(lobby, await datacenters.idsBySlug()) : undefined,
        max_players: body.max_players,
        players: body.players ?? 1,
        verification_data: body.verification_data,
        client: { address, user_agent: place.readUserAgent() },
      },
    });
    draft?.note({ verification: { game_mode_id: asked.game_mode, ...toNote(lobby), ...verdict } });
    draft?.reach('verified');
    refuseUnverified(verdict);
  }

  async function verifyFind(place: Verified, body: FindBody, search: Search, modes: Modes, regions: string[]) {
    const lobby = await choose(place, body, search);
    const game_mode = lobby?.game_mode ?? search.creates?.game_mode;
    const mode = game_mode === undefined ? undefined : modes.get(game_mode);
    const is_asked = mode !== undefined && isVerified(mode.name, modes);
    const game_modes = is_asked ? [mode.name] : search.game_modes.filter((name) => !isVerified(name, modes));
    if (is_asked) {
      const { tags } = search;
      await ask(place, mode.find, { kind: 'find', game_mode: mode.name, lobby, tags, lobby_config: undefined, body });
    }
    const { creates } = search;
    // What would have been made is of another mode: so another one is made, if it comes to that.
    if (creates && !game_modes.includes(creates.game_mode)) return checkFind({ ...body, game_modes }, modes, regions);
    return { ...search, game_modes };
  }

  return {
    /**
     * What a find may be given after it was verified: a seat in the game mode that it was verified for, where it would have
     * been seated at that moment; without one, in any that wants no verification.
     */
    find(place: Verified, body: FindBody, search: Search, modes: Modes, regions: string[]): Soon<Search> {
      const is_wanted = search.game_modes.some((name) => isVerified(name, modes));
      return is_wanted ? verifyFind(place, body, search, modes, regions) : search;
    },
    async join(place: Verified, body: JoinBody, lobby_id: string, mode: GameModeSettings | undefined): Promise<void> {
      if (!mode || !verificationOf(mode.join)) return;
      const lobby = await store.selectLobby(database.queries, lobby_id);
      if (!lobby || lobby.stop_ts) throw lobbyStopped();
      const asked = { kind: 'join', game_mode: mode.name, lobby, tags: {}, lobby_config: undefined, body } as const;
      await ask(place, mode.join, asked);
    },
    async create(
      place: Verified,
      body: CreateBody,
      { game_mode, tags, lobby_config }: NewLobby,
      modes: Modes,
    ): Promise<void> {
      const create = modes.get(game_mode)?.create;
      if (create) await ask(place, create, { kind: 'create', game_mode, lobby: undefined, tags, lobby_config, body });
    },
  };
}

/** Whether finds of a game mode are verified. */
function isVerified(name: string, modes: Modes): boolean {
  return verificationOf(modes.get(name)?.find) !== undefined;
}

interface Asked {
  kind: 'find' | 'join' | 'create';
  game_mode: string;
  lobby: LobbyRow | undefined;
  tags: Record<string, string>;
  lobby_config: string | undefined;
  body: { players?: number | undefined; max_players?: number | undefined; verification_data?: unknown };
}

function toSeen(
  { lobby_id, region, create_ts, is_closed, state }: LobbyRow,
  region_ids: ReadonlyMap<string, string>,
): SeenLobby {
  return { lobby_id, region_id: region_ids.get(region) ?? UNKNOWN_REGION, region, create_ts, is_closed, state };
}

const toNote = (lobby: LobbyRow | undefined) => (lobby?.ready_ts ? { lobby_id: lobby.lobby_id } : {});
