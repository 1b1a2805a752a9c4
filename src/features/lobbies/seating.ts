import type { Clock } from '../../platform/clock.ts';
import type { Database } from '../../platform/database/database.ts';
import { ServiceError } from '../../platform/errors.ts';
import type { CallerOf } from '../../platform/tokens/caller.ts';
import type { Tokens } from '../../platform/tokens/tokens.ts';
import type { Watch } from '../../platform/watch/watch.ts';
import { readCode } from '../codes.ts';
import { coordinatesOf } from '../coordinates.ts';
import type { Datacenters } from '../datacenters/datacenters.ts';
import type { Namespaces } from '../namespaces/namespaces.ts';
import { topics } from '../topics.ts';
import type { Versions } from '../versions/versions.ts';
import type { Founding } from './founding.ts';
import * as playersStore from './players-store.ts';
import type { Draft, Receipts } from './receipts.ts';
import { checkAction, checkCreate, checkFind, orderRegions } from './requests.ts';
import { type Rounds, type Seat, toSeat } from './rounds.ts';
import { membersOf, type SeatRequest } from './rules.ts';
import * as store from './store.ts';
import type { LobbyRow } from './tables.ts';
import {
  type CreateBody,
  type FindBody,
  type JoinAnswer,
  type JoinBody,
  toJoinAnswer,
  toPorts,
  type Whereabouts,
} from './wire.ts';

export interface SeatingDependencies {
  database: Database;
  clock: Clock;
  watch: Watch;
  tokens: Tokens;
  namespaces: Namespaces;
  versions: Versions;
  datacenters: Datacenters;
  rounds: Rounds;
  founding: Founding;
  receipts: Receipts;
  /** Slug of the datacenter that this process stands in. */
  own_region: string;
  request_timeout_ms: number;
  /** Somebody has left a lobby that may be empty now. */
  onLeft(): void;
}

/** Who asks, besides what he asks. */
interface Asking {
  address: string;
  /** The request, by which its receipt is found. */
  ray_id: string;
  /** Ends the wait for a lobby to be ready. */
  signal: AbortSignal;
}

/** An answer, and whether its lobby was made for it. */
interface Seated {
  answer: JoinAnswer;
  is_new: boolean;
}

type SeatHolder = Pick<SeatRequest, 'player_id' | 'others' | 'namespace_id'>;

/** Ids for players who come together. */
function nameMembers({ players = 1 }: { players?: number | undefined }): { player_id: string; others: string[] } {
  return { player_id: Bun.randomUUIDv7(), others: Array.from({ length: players - 1 }, () => Bun.randomUUIDv7()) };
}

/** The namespace of a caller's token. Throws NAMESPACE_NOT_FOUND. */
export async function requireNamespace(namespaces: Namespaces, namespace_id: string) {
  const namespace = await namespaces.find(namespace_id);
  if (!namespace) throw new ServiceError('NAMESPACE_NOT_FOUND', {});
  return namespace;
}

/** How players come to seats. */
export function createSeating(dependencies: SeatingDependencies) {
  const { database, clock, watch, tokens, namespaces, versions, datacenters } = dependencies;
  const { rounds, founding, receipts } = dependencies;
  const { own_region, request_timeout_ms, onLeft } = dependencies;

  /** Slugs of all regions, the one to recommend first: whoever says nothing else is likely to be near this process. */
  async function listRegions(client: Whereabouts): Promise<string[]> {
    const all = (await datacenters.list()).map(({ slug, ...place }) => ({ slug, coordinates: coordinatesOf(place) }));
    const isOwn = ({ slug }: { slug: string }) => slug === own_region;
    return orderRegions([...all.filter(isOwn), ...all.filter((region) => !isOwn(region))], client);
  }

  async function seatAndWait(request: SeatRequest, signal: AbortSignal, draft: Draft | undefined): Promise<Seated> {
    draft?.reach('checked');
    const explained = draft ? { ...request, is_explained: true } : request;
    return await waitIn(await rounds.seat(explained, draft), request, signal, draft);
  }

  /** Waits until a seat's lobby is ready and says how to get there. Whoever does not wait so long has no seat. */
  async function waitIn(
    seat: Seat,
    request: SeatHolder,
    signal: AbortSignal,
    draft: Draft | undefined,
  ): Promise<Seated> {
    draft?.reach('seated');
    try {
      const ports = seat.ports ?? (await waitUntilReady(seat, request, signal));
      // Nobody is there to sit down: the client has gone, or has been told that it took too long.
      if (!ports || signal.aborted) throw new ServiceError('API_REQUEST_TIMEOUT', { timeout_ms: request_timeout_ms });
      draft?.reach('ready');
      const [region, ...player_tokens] = await Promise.all([
        describeRegion(seat.region),
        ...membersOf(request).map((player_id) => tokens.issue({ kind: 'player', player_id })),
      ]);
      const answer = toJoinAnswer(
        { lobby_id: seat.lobby_id, ...(seat.code === null ? {} : { code: seat.code }), region },
        toPorts(ports),
        player_tokens,
      );
      return { answer, is_new: seat.is_new };
    } catch (error) {
      await giveBack(request);
      throw error;
    }
  }

  async function waitUntilReady(
    { lobby_id }: Seat,
    { player_id }: SeatHolder,
    signal: AbortSignal,
  ): Promise<LobbyRow['ports'] | undefined> {
    const look = async () => {
      const lobby = await store.selectLobby(database.queries, lobby_id);
      if (!lobby || lobby.stop_ts) throw new ServiceError('MATCHMAKER_LOBBY_STOPPED', {});
      return lobby.ports ?? undefined;
    };
    // Each waits for himself: a lobby has more players than one caller may have waiters.
    const waiting = { signal, waiter: `player:${player_id}`, timeout_ms: request_timeout_ms };
    return await watch.until(topics.lobby(lobby_id), look, waiting);
  }

  async function giveBack(holder: SeatHolder): Promise<void> {
    const how = { reason: 'request_ended', now: clock.now() } as const;
    const { removed } = await playersStore.removePlayers(
      database.queries,
      holder.namespace_id,
      playersStore.isAmong(membersOf(holder)),
      how,
    );
    if (removed > 0) onLeft();
  }

  async function describeRegion(slug: string): Promise<JoinAnswer['lobby']['region']> {
    const datacenter = (await datacenters.list()).find((one) => one.slug === slug);
    return { region_id: slug, display_name: datacenter?.name ?? slug };
  }

  return {
    /** A seat in the fullest open lobby that suits, or in one made for it. Answers when the lobby is ready. */
    async find(caller: CallerOf<'public'>, body: FindBody, asking: Asking): Promise<JoinAnswer> {
      const { namespace_id, game_id, version_id } = await requireNamespace(namespaces, caller.namespace_id);
      const { game_modes, regions: wanted, tags, max_players, prevent_auto_create_lobby } = body;
      const creates = prevent_auto_create_lobby !== true;
      const asked = { ...given({ game_modes, regions: wanted, tags, max_players }), creates, ...countOf(body) };
      const receipt = { kind: 'find', ray_id: asking.ray_id, namespace_id, version_id, request: asked } as const;
      return await receipts.keep(receipt, async (draft) => {
        const [modes, regions] = await Promise.all([versions.gameModes({ game_id, version_id }), listRegions(body)]);
        const search = checkFind(body, modes, regions);
        const place = { game_id, namespace_id, version_id, address: asking.address };
        return await seatAndWait({ kind: 'find', ...nameMembers(body), ...place, search }, asking.signal, draft);
      });
    },
    /** A lobby of the player's own, with his seat in it. Answers when it is ready. */
    async create(caller: CallerOf<'public'>, body: CreateBody, asking: Asking): Promise<JoinAnswer> {
      const { namespace_id, game_id, version_id } = await requireNamespace(namespaces, caller.namespace_id);
      const { game_mode, region, tags, max_players } = body;
      const wanted = {
        game_modes: [game_mode],
        regions: region === undefined ? undefined : [region],
        tags,
        max_players,
      };
      const asked = { ...given(wanted), ...countOf(body) };
      const receipt = { kind: 'create', ray_id: asking.ray_id, namespace_id, version_id, request: asked } as const;
      return await receipts.keep(receipt, async (draft) => {
        const [modes, regions] = await Promise.all([versions.gameModes({ game_id, version_id }), listRegions(body)]);
        const lobby = checkCreate(body, modes, regions);
        draft?.reach('checked');
        const founder = { ...nameMembers(body), address: asking.address };
        const planned = { namespace_id, game_id, version_id, lobby, founders: [founder] };
        const [founded] = await founding.foundLobbies([planned]);
        if (!founded || 'error' in founded) throw founded?.error;
        return await waitIn(toSeat(founded.lobby, true), { ...founder, namespace_id }, asking.signal, draft);
      });
    },
    /** A seat in a lobby that the player knows. Being closed is no obstacle (specification: States). */
    async join(
      caller: CallerOf<'public'>,
      { lobby_id, code, players }: Pick<JoinBody, 'lobby_id' | 'code' | 'players'>,
      asking: Asking,
    ): Promise<JoinAnswer> {
      const { namespace_id, game_id, version_id } = await requireNamespace(namespaces, caller.namespace_id);
      const asked = { ...given({ lobby_id }), ...countOf({ players }) };
      const receipt = { kind: 'join', ray_id: asking.ray_id, namespace_id, version_id, request: asked } as const;
      return await receipts.keep(receipt, async (draft) => {
        const lobby =
          lobby_id === undefined
            ? await store.selectLobbyByCode(database.queries, namespace_id, readCode(code ?? ''))
            : await store.selectLobby(database.queries, lobby_id);
        const is_known = lobby?.namespace_id === namespace_id && (code === undefined || lobby.code === readCode(code));
        if (!is_known) throw new ServiceError('MATCHMAKER_LOBBY_NOT_FOUND', {});
        if (lobby.stop_ts) throw new ServiceError('MATCHMAKER_LOBBY_STOPPED', {});
        const modes = await versions.gameModes({ game_id, version_id: lobby.version_id });
        checkAction(modes.get(lobby.game_mode)?.join ?? { enabled: true }, 'MATCHMAKER_JOIN_DISABLED');
        const place = { game_id, namespace_id, address: asking.address };
        return await seatAndWait(
          { kind: 'join', ...nameMembers({ players }), ...place, lobby_id: lobby.lobby_id },
          asking.signal,
          draft,
        );
      });
    },
  };
}

/** What a request says, without what it leaves out. */
function given<Members extends object>(
  members: Members,
): Partial<{ [Name in keyof Members]: NonNullable<Members[Name]> }> {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as never;
}

const countOf = ({ players = 1 }: { players?: number | undefined }) => ({ players });
