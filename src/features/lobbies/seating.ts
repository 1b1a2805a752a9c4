import type { Clock } from '../../platform/clock.ts';
import type { Database } from '../../platform/database/database.ts';
import { ServiceError } from '../../platform/errors.ts';
import type { CallerOf } from '../../platform/tokens/caller.ts';
import type { Tokens } from '../../platform/tokens/tokens.ts';
import type { Watch } from '../../platform/watch/watch.ts';
import type { Datacenters } from '../datacenters/datacenters.ts';
import type { Namespaces } from '../namespaces/namespaces.ts';
import { topics } from '../topics.ts';
import type { Versions } from '../versions/versions.ts';
import type { Founding } from './founding.ts';
import * as playersStore from './players-store.ts';
import { checkAction, checkCreate, checkFind } from './requests.ts';
import type { Rounds, Seat } from './rounds.ts';
import type { SeatRequest } from './rules.ts';
import * as store from './store.ts';
import type { LobbyRow } from './tables.ts';
import { type CreateBody, type FindBody, type JoinAnswer, toJoinAnswer, toPorts } from './wire.ts';

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
  /** Slug of the datacenter that this process stands in. */
  own_region: string;
  request_timeout_ms: number;
  /** Somebody has left a lobby that may be empty now. */
  onLeft(): void;
}

/** Who asks, besides what he asks. */
interface Asking {
  address: string;
  /** Ends the wait for a lobby to be ready. */
  signal: AbortSignal;
}

type SeatHolder = Pick<SeatRequest, 'player_id' | 'namespace_id'>;

/** The namespace of a caller's token. Throws NAMESPACE_NOT_FOUND. */
export async function requireNamespace(namespaces: Namespaces, namespace_id: string) {
  const namespace = await namespaces.find(namespace_id);
  if (!namespace) throw new ServiceError('NAMESPACE_NOT_FOUND', {});
  return namespace;
}

/** How players come to seats. */
export function createSeating(dependencies: SeatingDependencies) {
  const { database, clock, watch, tokens, namespaces, versions, datacenters, rounds, founding } = dependencies;
  const { own_region, request_timeout_ms, onLeft } = dependencies;

  /** Slugs of all regions, the one to recommend first: whoever reaches this process is likely to be near it. */
  async function listRegions(): Promise<string[]> {
    const slugs = (await datacenters.list()).map(({ slug }) => slug);
    return [...slugs.filter((slug) => slug === own_region), ...slugs.filter((slug) => slug !== own_region)];
  }

  async function seatAndWait(request: SeatRequest, signal: AbortSignal): Promise<JoinAnswer> {
    return await waitIn(await rounds.seat(request), request, signal);
  }

  /** Waits until a seat's lobby is ready and says how to get there. Whoever does not wait so long has no seat. */
  async function waitIn(seat: Seat, request: SeatHolder, signal: AbortSignal): Promise<JoinAnswer> {
    try {
      const ports = seat.ports ?? (await waitUntilReady(seat, request, signal));
      // Nobody is there to sit down: the client has gone, or has been told that it took too long.
      if (!ports || signal.aborted) throw new ServiceError('API_REQUEST_TIMEOUT', { timeout_ms: request_timeout_ms });
      const [region, player_token] = await Promise.all([
        describeRegion(seat.region),
        tokens.issue({ kind: 'player', player_id: request.player_id }),
      ]);
      return toJoinAnswer({ lobby_id: seat.lobby_id, region }, toPorts(ports), player_token);
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

  async function giveBack({ player_id, namespace_id }: SeatHolder): Promise<void> {
    const how = { reason: 'request_ended', now: clock.now() } as const;
    const { removed } = await playersStore.removePlayers(
      database.queries,
      namespace_id,
      playersStore.isPlayer(player_id),
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
    async find(caller: CallerOf<'public'>, body: FindBody, { address, signal }: Asking): Promise<JoinAnswer> {
      const { namespace_id, game_id, version_id } = await requireNamespace(namespaces, caller.namespace_id);
      const [modes, regions] = await Promise.all([versions.gameModes({ game_id, version_id }), listRegions()]);
      const search = checkFind(body, modes, regions);
      const player_id = Bun.randomUUIDv7();
      const request = { kind: 'find', player_id, game_id, namespace_id, version_id, address, search } as const;
      return await seatAndWait(request, signal);
    },
    /** A lobby of the player's own, with his seat in it. Answers when it is ready. */
    async create(caller: CallerOf<'public'>, body: CreateBody, { address, signal }: Asking): Promise<JoinAnswer> {
      const { namespace_id, game_id, version_id } = await requireNamespace(namespaces, caller.namespace_id);
      const [modes, regions] = await Promise.all([versions.gameModes({ game_id, version_id }), listRegions()]);
      const lobby = checkCreate(body, modes, regions);
      const founder = { player_id: Bun.randomUUIDv7(), address };
      const planned = { namespace_id, game_id, version_id, lobby, founders: [founder] };
      const [founded] = await founding.foundLobbies([planned]);
      if (!founded || 'error' in founded) throw founded?.error;
      const seat = { lobby_id: founded.lobby.lobby_id, region: lobby.region, ports: null };
      return await waitIn(seat, { ...founder, namespace_id }, signal);
    },
    /** A seat in a lobby that the player knows. Being closed is no obstacle (specification: States). */
    async join(caller: CallerOf<'public'>, lobby_id: string, { address, signal }: Asking): Promise<JoinAnswer> {
      const { namespace_id, game_id } = await requireNamespace(namespaces, caller.namespace_id);
      const lobby = await store.selectLobby(database.queries, lobby_id);
      if (lobby?.namespace_id !== namespace_id) throw new ServiceError('MATCHMAKER_LOBBY_NOT_FOUND', {});
      if (lobby.stop_ts) throw new ServiceError('MATCHMAKER_LOBBY_STOPPED', {});
      const modes = await versions.gameModes({ game_id, version_id: lobby.version_id });
      checkAction(modes.get(lobby.game_mode)?.join ?? { enabled: true }, 'MATCHMAKER_JOIN_DISABLED');
      const player_id = Bun.randomUUIDv7();
      return await seatAndWait({ kind: 'join', player_id, game_id, namespace_id, address, lobby_id }, signal);
    },
  };
}
