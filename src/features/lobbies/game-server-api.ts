import { after, type Clock } from '../../platform/clock.ts';
import type { Database } from '../../platform/database/database.ts';
import { ServiceError } from '../../platform/errors.ts';
import type { Events } from '../../platform/events.ts';
import { createRounds } from '../../platform/rounds.ts';
import type { CallerOf } from '../../platform/tokens/caller.ts';
import type { Tokens } from '../../platform/tokens/tokens.ts';
import type { Servers } from '../servers/servers.ts';
import type { LockedOutcome } from './lobby-locks-store.ts';
import { retryWhileLocked } from './lock-retries.ts';
import * as playersStore from './players-store.ts';
import { lobbyOfServerStopped, lobbyStopped } from './refusals.ts';
import * as store from './store.ts';
import type { LobbyRow, PlayerRow } from './tables.ts';

export interface GameServerApiDependencies {
  database: Database;
  clock: Clock;
  events: Events;
  tokens: Tokens;
  servers: Servers;
  seat_timeout_ms: number;
  /** Called after seats were freed: their lobby may be empty now. */
  onSeatsFreed(): void;
}

type LobbyCaller = CallerOf<'lobby'>;

interface Replacing {
  /** Called before the player is recorded as connected. Returns whether this connection may replace an earlier one. */
  mayReplace(player_id: string): Promise<boolean>;
}

/** Limits of the rounds that record players who connected, and those who left. */
const CONNECTS = { round_max: 512, waiting_max: 10_000 };
const LEAVES = { round_max: 512, waiting_max: 10_000 };
/** Limits of the rounds that record states and closings. They are smaller, because a state has up to 64 KiB. */
const LOBBY_UPDATES = { round_max: 128, waiting_max: 1_000 };

/** How long work waits while another transaction has locked its lobby. */
const LOCKED_MAX_MS = {
  leave_from_server: 10_000,
  /** Short, because other reports of the gateway wait behind it. */
  leave_from_gateway: 100,
  /** Short, so that an update does not replace a later one. */
  update: 1_000,
};

/**
 * Creates the use cases of game servers, and of the gateway for servers that do not report: a lobby is ready or closed, a
 * player has connected or left.
 */
export function createGameServerApi(dependencies: GameServerApiDependencies) {
  const { database, clock, events, tokens, servers, seat_timeout_ms, onSeatsFreed } = dependencies;
  const connects_connection = database.openDedicatedConnection();
  // Leaves and updates wait for locks on lists of lobbies, and connects must not wait for that.
  const lists_connection = database.openDedicatedConnection();

  async function get({ lobby_id }: Pick<LobbyCaller, 'lobby_id'>): Promise<LobbyRow> {
    const lobby = await store.selectLobby(database.queries, lobby_id);
    if (!lobby) throw new ServiceError('MATCHMAKER_LOBBY_NOT_FOUND', {});
    if (lobby.stop_ts) throw lobbyOfServerStopped();
    return lobby;
  }

  /** Records a connect in a round with others. Returns false if the player may not connect. */
  const recordConnectInRound = createRounds<playersStore.Connect, boolean>({
    ...CONNECTS,
    async work(connects) {
      const connected = await playersStore.setConnected(connects_connection, connects, clock.now());
      // Of several connects with one token at the same moment, the first counts.
      return connects.map(
        ({ player_id, lobby_id }) => connected.get(player_id) === lobby_id && connected.delete(player_id),
      );
    },
  });

  /** Records a leave in a round with others, and frees the seat. Returns undefined if the player had left before. */
  const recordLeaveInRound = createRounds<string, LockedOutcome | undefined>({
    ...LEAVES,
    async work(player_ids) {
      const leaves = await playersStore.setDisconnected(lists_connection, player_ids, clock.now());
      return player_ids.map((player_id) => {
        const outcome = leaves.get(player_id);
        // Of several reports of one leave, the first counts.
        if (outcome === 'done') leaves.delete(player_id);
        return outcome;
      });
    },
  });

  /** Records a state or closing of a lobby in a round with others. Returns undefined if the lobby is not running. */
  const recordUpdateInRound = createRounds<store.LobbyUpdate, LockedOutcome | undefined>({
    ...LOBBY_UPDATES,
    async work(updates) {
      const changes = await store.updateLobbies(lists_connection, updates, clock.now());
      return updates.map(({ lobby_id }) => changes.get(lobby_id));
    },
  });

  async function requireUpdate(change: store.LobbyUpdate): Promise<void> {
    if (await retryWhileLocked(() => recordUpdateInRound(change), LOCKED_MAX_MS.update)) return;
    await get(change);
    throw lobbyOfServerStopped();
  }

  /** Returns a player of the lobby. Throws TOKEN_ERROR or MATCHMAKER_PLAYER_IN_DIFFERENT_LOBBY. */
  async function requirePlayerOf({ lobby_id }: LobbyCaller, player_id: string): Promise<PlayerRow> {
    const player = await playersStore.selectPlayer(database.queries, player_id);
    if (!player) throw new ServiceError('TOKEN_ERROR', { reason: 'no player has this token' });
    if (player.lobby_id !== lobby_id) throw new ServiceError('MATCHMAKER_PLAYER_IN_DIFFERENT_LOBBY', {});
    return player;
  }

  /** Records that a player has connected, once. Throws an error that says why the player must be rejected. */
  async function requireConnect(caller: LobbyCaller, player_id: string): Promise<void> {
    if (await recordConnectInRound({ player_id, lobby_id: caller.lobby_id })) return;
    const { remove_ts, remove_reason, connect_ts } = await requirePlayerOf(caller, player_id);
    if (remove_reason === 'seat_expired') throw new ServiceError('MATCHMAKER_PLAYER_REGISTRATION_EXPIRED', {});
    if (remove_ts) throw new ServiceError('MATCHMAKER_PLAYER_REMOVED', {});
    if (connect_ts) throw new ServiceError('MATCHMAKER_PLAYER_ALREADY_CONNECTED', {});
    throw new ServiceError('MATCHMAKER_PLAYER_REGISTRATION_EXPIRED', {});
  }

  /**
   * Records that a player left: frees the seat, or keeps it for `reconnect_within_ms`. Returns 'locked' if another
   * transaction has locked the lobby.
   */
  async function tryToRecordLeave(player_id: string, reconnect_within_ms: number): Promise<LockedOutcome | undefined> {
    if (reconnect_within_ms > 0) {
      const player = await playersStore.selectPlayer(database.queries, player_id);
      return player && (await playersStore.keepSeat(database.queries, player, after(clock.now(), reconnect_within_ms)));
    }
    const outcome = await recordLeaveInRound(player_id);
    if (outcome === 'done') onSeatsFreed();
    return outcome;
  }

  /** Records that a player left, once the lobby is not locked. Throws DATABASE_BUSY if it stays locked. */
  async function recordLeave(
    player_id: string,
    { reconnect_within_ms, locked_max_ms }: { reconnect_within_ms: number; locked_max_ms: number },
  ): Promise<void> {
    await retryWhileLocked(() => tryToRecordLeave(player_id, reconnect_within_ms), locked_max_ms);
  }

  /** Returns the id of the player whom a token belongs to. */
  async function playerIdOf(player_token: string): Promise<string> {
    return (await tokens.verifyKind(player_token, ['player'])).player_id;
  }

  return {
    /** Records that the lobby takes players, which answers the requests that wait for it. Repeating it is harmless. */
    async ready(caller: Pick<LobbyCaller, 'lobby_id'>): Promise<void> {
      const lobby = await get(caller);
      if (lobby.ready_ts) return;
      const ports = await servers.reachablePortsOf(lobby, lobby.server_id);
      const now = clock.now();
      const ready = await database.transact((tx) =>
        store.setReady(tx, lobby, { now, deadline: after(now, seat_timeout_ms), ports }),
      );
      const after_ms = now.getTime() - lobby.create_ts.getTime();
      if (ready) events.emit({ event: 'lobby_ready', lobby_id: lobby.lobby_id, after_ms });
    },
    /** Closes the lobby to finds, or opens it again. */
    async setClosed({ lobby_id }: Pick<LobbyCaller, 'lobby_id'>, is_closed: boolean): Promise<void> {
      await requireUpdate({ lobby_id, is_closed });
    },
    /** Sets the state of the lobby: any JSON as text. An empty text removes the state. */
    async setState({ lobby_id }: LobbyCaller, state: string): Promise<void> {
      await requireUpdate({ lobby_id, state });
    },
    /** Returns the state of a lobby of the same namespace; undefined if it has none. */
    async getState(caller: LobbyCaller, lobby_id: string): Promise<string | undefined> {
      const [own, lobby] = await Promise.all([get(caller), store.selectLobby(database.queries, lobby_id)]);
      if (lobby?.namespace_id !== own.namespace_id) throw new ServiceError('MATCHMAKER_LOBBY_NOT_FOUND', {});
      return lobby.state ?? undefined;
    },
    /**
     * Records that a player has connected, as the lobby's server reports. Throws an error that says why the server must
     * reject the player.
     */
    async reportConnectFromServer(caller: LobbyCaller, player_token: string): Promise<void> {
      await requireConnect(caller, await playerIdOf(player_token));
    },
    /**
     * Records that a player connects to the lobby on a server, as the gateway reports. Returns the player's id. A player who
     * is connected may connect again if `mayReplace` says so.
     */
    async reportConnectFromGateway(
      server_id: string,
      player_token: string,
      { mayReplace }: Replacing,
    ): Promise<string> {
      const lobby_id = await store.selectLobbyOn(database.queries, server_id);
      if (lobby_id === undefined) throw lobbyStopped();
      const player_id = await playerIdOf(player_token);
      const lobby = { kind: 'lobby', lobby_id } as const;
      // The token of another lobby must not replace the player's connection there.
      await requirePlayerOf(lobby, player_id);
      const may_replace = await mayReplace(player_id);
      await requireConnect(lobby, player_id).catch((error: unknown) => {
        const is_connected = error instanceof ServiceError && error.code === 'MATCHMAKER_PLAYER_ALREADY_CONNECTED';
        if (!is_connected || !may_replace) throw error;
      });
      return player_id;
    },
    /**
     * The lobby's server reports that a player has left: frees the seat, or keeps it for `reconnect_within_ms`. Repeating it
     * is harmless until the player connects again. After that, it counts as another leave.
     */
    async reportLeaveFromServer(
      caller: LobbyCaller,
      { player_token, reconnect_within_ms = 0 }: { player_token: string; reconnect_within_ms?: number | undefined },
    ): Promise<void> {
      const { player_id } = await requirePlayerOf(caller, await playerIdOf(player_token));
      await recordLeave(player_id, { reconnect_within_ms, locked_max_ms: LOCKED_MAX_MS.leave_from_server });
    },
    /**
     * The gateway reports that a player has left: frees the seat, or keeps it for `reconnect_within_ms`. Repeating it is
     * harmless until the player connects again. Throws DATABASE_BUSY soon if the lobby is locked, so that the gateway can go
     * on with other lobbies.
     */
    reportLeaveFromGateway: (player_id: string, reconnect_within_ms: number) =>
      recordLeave(player_id, { reconnect_within_ms, locked_max_ms: LOCKED_MAX_MS.leave_from_gateway }),
    /** Returns the unready running lobbies on servers. */
    unreadyOn: (server_ids: string[]) => store.selectUnreadyOn(database.queries, server_ids),
    /** Returns those of these players who were kicked. */
    kickedAmong: (player_ids: string[]) => playersStore.selectKicked(database.queries, player_ids),
  };
}
