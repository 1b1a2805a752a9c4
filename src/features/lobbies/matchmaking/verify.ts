import type { Database } from '../../../platform/database/database.ts';
import { type Datacenters, UNKNOWN_REGION } from '../../datacenters/datacenters.ts';
import type { SeatRequestKind } from '../../seat-request-kinds.ts';
import {
  type PayloadLobby,
  refuseUnverified,
  type Verdict,
  type Verification,
} from '../../verification/verification.ts';
import {
  type ActionConfig,
  type GameModeSettings,
  type VerificationConfig,
  verificationOf,
} from '../../versions/versions.ts';
import { gameModeUuid } from '../developers/game-mode-uuid.ts';
import { lobbyStopped } from '../refusals.ts';
import * as store from '../store.ts';
import type { LobbyRow } from '../tables.ts';
import type { CreateBody, FindBody, JoinBody } from '../wire.ts';
import type { Choices } from './choices.ts';
import type { LobbyCache } from './lobby-cache/lobby-cache.ts';
import type { ReceiptDraft } from './receipts/receipt-draft.ts';
import { type NewLobby, planSearch, type Search } from './request-checks.ts';
import type { RequestContext } from './request-context.ts';
import { findLobby } from './rounds/planner.ts';
import { waitingTime } from './waiting-time.ts';

// External verification (see the specification): one request to the game's own server, before a seat is taken or a lobby is
// created. The verify functions throw MATCHMAKER_VERIFICATION_FAILED and MATCHMAKER_VERIFICATION_REQUEST_FAILED.

export interface VerifyDependencies {
  database: Database;
  datacenters: Datacenters;
  cache: LobbyCache;
  verification: Verification;
  request_timeout_ms: number;
}

/** Returns an id for each verification of one request. */
export type NextVerificationId = () => string;

/**
 * Returns a function that returns the ray id first, so that a game's server and the receipt name the same request. Each
 * later id is new: a request that is verified again for another version must not look like a repetition.
 */
export function createVerificationIds({ ray_id }: Pick<RequestContext, 'ray_id'>): NextVerificationId {
  let next = ray_id;
  return () => {
    const id = next;
    next = Bun.randomUUIDv7();
    return id;
  };
}

/** The request to verify, and the version that it was checked against. */
interface RequestToVerify {
  game_id: string;
  namespace_id: string;
  version_id: string;
  context: Pick<RequestContext, 'address' | 'deadline' | 'readUserAgent'>;
  nextVerificationId: NextVerificationId;
  /** Of a find that may wait in the queue. */
  ticket?: string | undefined;
  draft: ReceiptDraft;
}

/** Returns whether one of the modes of a search needs verification. */
export function needsVerification({ game_modes }: Search, modes: Choices['modes']): boolean {
  return game_modes.some((name) => isVerified(name, modes));
}

/**
 * Returns the search that a find may make if one of its modes needs verification. Previews which lobby the find would
 * get. If that lobby's mode needs verification, verifies, and returns a search for that mode only. Otherwise returns a
 * search for the modes without verification.
 */
export async function verifyFind(
  dependencies: VerifyDependencies,
  request: RequestToVerify,
  { body, search, modes, regions }: Choices & { body: FindBody; search: Search },
): Promise<Search> {
  const lobby = await previewLobby(dependencies, request, body, search);
  const game_mode = lobby?.game_mode ?? search.new_lobby?.game_mode;
  const mode = game_mode === undefined ? undefined : modes.get(game_mode);
  const needs_verification = mode !== undefined && isVerified(mode.name, modes);
  const game_modes = needs_verification ? [mode.name] : search.game_modes.filter((name) => !isVerified(name, modes));
  if (needs_verification) {
    const { tags } = search;
    const content = { kind: 'find', game_mode: mode.name, lobby, tags, lobby_config: undefined, body } as const;
    await verify(dependencies, request, mode.find, content);
  }
  const { new_lobby } = search;
  // The mode of the lobby to create is no longer searched, so planSearch plans a lobby of a searched mode.
  if (new_lobby && !game_modes.includes(new_lobby.game_mode))
    return planSearch({ ...body, game_modes }, modes, regions);
  return { ...search, game_modes };
}

export async function verifyJoin(
  dependencies: VerifyDependencies,
  request: RequestToVerify,
  { body, mode, lobby_id }: { body: JoinBody; mode: GameModeSettings | undefined; lobby_id: string },
): Promise<void> {
  if (!mode || !verificationOf(mode.join)) return;
  const lobby = await store.selectLobby(dependencies.database.queries, lobby_id);
  if (!lobby || lobby.stop_ts) throw lobbyStopped();
  const content = { kind: 'join', game_mode: mode.name, lobby, tags: {}, lobby_config: undefined, body } as const;
  await verify(dependencies, request, mode.join, content);
}

export async function verifyCreate(
  dependencies: VerifyDependencies,
  request: RequestToVerify,
  { body, mode, lobby }: { body: CreateBody; mode: GameModeSettings | undefined; lobby: NewLobby },
): Promise<void> {
  if (!mode?.create) return;
  const { game_mode, tags, lobby_config } = lobby;
  const content = { kind: 'create', game_mode, lobby: undefined, tags, lobby_config, body } as const;
  await verify(dependencies, request, mode.create, content);
}

/** The content of a verification request. */
export interface VerificationContent {
  kind: SeatRequestKind;
  game_mode: string;
  lobby: LobbyRow | undefined;
  tags: Record<string, string>;
  lobby_config: string | undefined;
  body: { players?: number | undefined; max_players?: number | undefined; verification_data?: unknown };
}

async function verify(
  dependencies: VerifyDependencies,
  { draft, ...request }: RequestToVerify,
  action: ActionConfig,
  content: VerificationContent,
): Promise<void> {
  const config = verificationOf(action);
  if (!config) return;
  // The server could not answer in time, so it is not asked.
  const { deadline } = request.context;
  if (waitingTime(deadline, dependencies.request_timeout_ms) === 0) throw deadline.toError();
  draft.recordStage('checked');
  const verdict = await requestVerdict(dependencies, request, config, content);
  draft.recordDecision({ verification: { ...toVerifiedIds(content), ...verdict } });
  draft.recordStage('verified');
  // The end of the request has cancelled the verification, which is no failure of the game's server.
  if (deadline.is_over) throw deadline.toError();
  refuseUnverified(verdict);
}

/** Sends a verification request, which must be answered in time for the answer of the player's request. */
export async function requestVerdict(
  { datacenters, verification, request_timeout_ms }: Omit<VerifyDependencies, 'database' | 'cache'>,
  { game_id, namespace_id, version_id, context, nextVerificationId }: Omit<RequestToVerify, 'draft'>,
  config: VerificationConfig,
  { body, lobby, ...asked }: VerificationContent,
): Promise<Verdict> {
  const { address, deadline } = context;
  return await verification.ask({
    id: nextVerificationId(),
    game_id,
    config,
    signal: deadline.signal,
    time_left_ms: waitingTime(deadline, request_timeout_ms),
    asked: {
      ...asked,
      namespace_id,
      game_mode_id: gameModeUuid(lobby?.version_id ?? version_id, asked.game_mode),
      lobby: lobby?.ready_ts ? toPayloadLobby(lobby, await datacenters.idsBySlug()) : undefined,
      state: lobby?.state ?? undefined,
      max_players: body.max_players,
      players: body.players ?? 1,
      verification_data: body.verification_data,
      client: { address, user_agent: context.readUserAgent() },
    },
  });
}

/** Returns the game mode and the lobby that were verified, as a receipt shows them: the id of a mode is its name there. */
export function toVerifiedIds({ game_mode, lobby }: VerificationContent): { game_mode_id: string; lobby_id?: string } {
  return { game_mode_id: game_mode, ...(lobby?.ready_ts && { lobby_id: lobby.lobby_id }) };
}

/** Returns the lobby in which a find would get its seat now. */
async function previewLobby(
  { database, cache }: VerifyDependencies,
  { namespace_id, version_id, ticket }: RequestToVerify,
  body: FindBody,
  search: Search,
): Promise<LobbyRow | undefined> {
  const seeker = { version_id, search, ...(ticket !== undefined && { ticket }) };
  for (const is_fresh of [false, true]) {
    if (!cache.isLoaded(namespace_id)) await cache.load(namespace_id);
    const index = await cache.read(namespace_id, { is_fresh });
    const open = index && findLobby(seeker, body.players ?? 1, index);
    const lobby = open && (await store.selectLobby(database.queries, open.lobby_id));
    if (lobby && !lobby.stop_ts && !lobby.is_closed) return lobby;
  }
  return undefined;
}

/** Returns whether finds in a mode are verified. */
function isVerified(game_mode: string, modes: Choices['modes']): boolean {
  return verificationOf(modes.get(game_mode)?.find) !== undefined;
}

function toPayloadLobby(
  { lobby_id, region, create_ts, is_closed }: LobbyRow,
  datacenter_ids: ReadonlyMap<string, string>,
): PayloadLobby {
  return { lobby_id, region_id: datacenter_ids.get(region) ?? UNKNOWN_REGION, region, create_ts, is_closed };
}
