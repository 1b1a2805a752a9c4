import { after, type Clock } from '../../platform/clock.ts';
import type { Database } from '../../platform/database/database.ts';
import { ServiceError } from '../../platform/errors.ts';
import type { Events } from '../../platform/events.ts';
import { createRounds } from '../../platform/rounds.ts';
import type { CallerOf } from '../../platform/tokens/caller.ts';
import type { Tokens } from '../../platform/tokens/tokens.ts';
import type { Servers } from '../servers/servers.ts';
import * as playersStore from './players-store.ts';
import { lobbyStopped } from './refusals.ts';
import * as store from './store.ts';
import type { LobbyRow, PlayerRow } from './tables.ts';

export interface GameServerApiDependencies {
  database: Database;
  clock: Clock;
  events: Events;
  tokens: Tokens;
  servers: Servers;
  seat_timeout_ms: number;
  /** Called when a player has left a lobby, which may be empty now. */
  onLeft(): void;
}

type Lobby = CallerOf<'lobby'>;

/** How many arrivals are noted together at the most, and how many may wait for that. */
const ARRIVALS = { round_max: 512, waiting_max: 10_000 };
/** The same for what lobbies say of themselves: a state has up to 64 KiB. */
const NEWS = { round_max: 128, waiting_max: 1_000 };

/** What a lobby's server says: of the lobby, and of its players. */
export function createGameServerApi(dependencies: GameServerApiDependencies) {
  const { database, clock, events, tokens, servers, seat_timeout_ms, onLeft } = dependencies;
  const arrivals_connection = database.openDedicatedConnection();
  // A connection of their own: updates wait for locks on lists of lobbies, and arrivals must not wait with them.
  const news_connection = database.openDedicatedConnection();

  async function get({ lobby_id }: Pick<Lobby, 'lobby_id'>): Promise<LobbyRow> {
    const lobby = await store.selectLobby(database.queries, lobby_id);
    if (!lobby) throw new ServiceError('MATCHMAKER_LOBBY_NOT_FOUND', {});
    if (lobby.stop_ts) throw lobbyStopped();
    return lobby;
  }

  /** Notes that a player has connected; false when the player may not. */
  const connect = createRounds<playersStore.Arrival, boolean>({
    ...ARRIVALS,
    async work(arrivals) {
      const connected = await playersStore.setConnected(arrivals_connection, arrivals, clock.now());
      // Of several arrivals with one token at the same moment, the first counts.
      return arrivals.map(
        ({ player_id, lobby_id }) => connected.get(player_id) === lobby_id && connected.delete(player_id),
      );
    },
  });

  /** Notes what a lobby says of itself; false when it does not run. */
  const update = createRounds<store.LobbyNews, boolean>({
    ...NEWS,
    async work(news) {
      const running = await store.updateLobbies(news_connection, news);
      return news.map(({ lobby_id }) => running.has(lobby_id));
    },
  });

  async function tell(news: store.LobbyNews): Promise<void> {
    if (await update(news)) return;
    await get(news);
    throw lobbyStopped();
  }

  /** Returns a player of the lobby by the id that a token names. */
  async function getPlayer({ lobby_id }: Lobby, player_id: string): Promise<PlayerRow> {
    const player = await playersStore.selectPlayer(database.queries, player_id);
    if (!player) throw new ServiceError('TOKEN_ERROR', { reason: 'no player has this token' });
    if (player.lobby_id !== lobby_id) throw new ServiceError('MATCHMAKER_PLAYER_IN_DIFFERENT_LOBBY', {});
    return player;
  }

  async function verify(player_token: string): Promise<string> {
    return (await tokens.verifyKind(player_token, ['player'])).player_id;
  }

  return {
    /** Notes that the lobby takes players, which answers the requests that wait for it. Repeating it is harmless. */
    async ready(caller: Lobby): Promise<void> {
      const lobby = await get(caller);
      if (lobby.ready_ts) return;
      const ports = await servers.portsOf(lobby, lobby.server_id);
      const now = clock.now();
      const ready = await database.transact((tx) =>
        store.setReady(tx, lobby, { now, deadline: after(now, seat_timeout_ms), ports }),
      );
      const after_ms = now.getTime() - lobby.create_ts.getTime();
      if (ready) events.emit({ event: 'lobby_ready', lobby_id: lobby.lobby_id, after_ms });
    },
    /** Whether find may give the lobby's places away. */
    async setClosed({ lobby_id }: Lobby, is_closed: boolean): Promise<void> {
      await tell({ lobby_id, is_closed });
    },
    /** What the lobby says of itself: the text of any JSON, an empty one for nothing. */
    async setState({ lobby_id }: Lobby, state: string): Promise<void> {
      await tell({ lobby_id, state });
    },
    /** The state of a lobby of the same namespace; undefined when it has none. */
    async getState(caller: Lobby, lobby_id: string): Promise<string | undefined> {
      const [own, lobby] = await Promise.all([get(caller), store.selectLobby(database.queries, lobby_id)]);
      if (lobby?.namespace_id !== own.namespace_id) throw new ServiceError('MATCHMAKER_LOBBY_NOT_FOUND', {});
      return lobby.state ?? undefined;
    },
    /** Notes that a player has come with this token. Throws why the lobby must reject the player. */
    async connected(caller: Lobby, player_token: string): Promise<void> {
      const player_id = await verify(player_token);
      if (await connect({ player_id, lobby_id: caller.lobby_id })) return;
      const { remove_ts, remove_reason, connect_ts } = await getPlayer(caller, player_id);
      if (remove_reason === 'seat_expired') throw new ServiceError('MATCHMAKER_PLAYER_REGISTRATION_EXPIRED', {});
      if (remove_ts) throw new ServiceError('MATCHMAKER_PLAYER_REMOVED', {});
      if (connect_ts) throw new ServiceError('MATCHMAKER_PLAYER_ALREADY_CONNECTED', {});
      throw new ServiceError('MATCHMAKER_PLAYER_REGISTRATION_EXPIRED', {});
    },
    /** Notes that a player has left. Keeps the seat for `reconnect_within_ms`. Repeating it is harmless. */
    async disconnected(
      caller: Lobby,
      { player_token, reconnect_within_ms = 0 }: { player_token: string; reconnect_within_ms?: number | undefined },
    ): Promise<void> {
      const player = await getPlayer(caller, await verify(player_token));
      const { player_id, namespace_id } = player;
      if (reconnect_within_ms > 0) {
        return await playersStore.keepSeat(database.queries, player, after(clock.now(), reconnect_within_ms));
      }
      const how = { reason: 'disconnected', now: clock.now() } as const;
      const { removed } = await playersStore.removePlayers(
        database.queries,
        namespace_id,
        playersStore.isAmong([player_id]),
        how,
      );
      if (removed > 0) onLeft();
    },
  };
}
