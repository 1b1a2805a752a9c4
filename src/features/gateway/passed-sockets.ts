import { ServiceError } from '../../platform/errors.ts';
import { noteSocket, noteSocketEnd } from '../../platform/http/ports/connections-in-use.ts';
import { isToken } from '../../platform/http/token.ts';
import type { UpgradingServer } from '../../platform/http/upgrades.ts';
import { toServerHeaders } from './forwarded-headers.ts';
import type { PassedRequest } from './named-requests.ts';
import { CLOSE_CODES, openServerSocket, PassedSocket } from './passed-socket.ts';
import { type Handshake, takePlayerToken } from './player-tokens.ts';
import type { AdmittedPlayer, Presence } from './presence.ts';

/** Codes and reasons with which the connection of a player is closed before the player leaves. */
const STOP = {
  /** The player has connected again, by another socket. */
  replaced: { code: 4_409, reason: 'the player has connected again' },
  /** A developer has kicked the player. */
  kicked: { code: 4_403, reason: 'the player was kicked' },
  /** Other machines have reported its end. The player may come back. */
  given_up: {
    code: CLOSE_CODES.restarting,
    reason: 'the connection was given up while this machine was not reachable',
  },
} as const;
type StopReason = keyof typeof STOP;
/** The id of the player, for servers whose players the gateway reports. */
const PLAYER_HEADER = 'muster-player-id';

/** The connection of a player whom the gateway reports, from the admission to its end. */
interface ReportedConnection extends AdmittedPlayer {
  /** Undefined until the server has accepted the WebSocket. */
  socket: PassedSocket | undefined;
  /** Why the connection is to be closed. */
  stopped: StopReason | undefined;
}

/** The player and the traffic of a WebSocket. */
interface Opened extends Pick<PassedRequest, 'traffic' | 'onEnd'> {
  /** Undefined if the gateway does not report the player. */
  connection: ReportedConnection | undefined;
}

export type PassedSockets = ReturnType<typeof createPassedSockets>;

/** Creates the WebSockets that are open through the gateway. */
export function createPassedSockets({ presence }: { presence: Pick<Presence, 'admit' | 'overAmong'> }) {
  const open_sockets = new Set<PassedSocket>();
  /** The connections of players whom the gateway reports, by player. A player has several only until all but one are closed. */
  const of_players = new Map<string, ReportedConnection[]>();
  let is_stopping = false;

  /** Opens a WebSocket: admits its player if the gateway reports players, opens the server's side, then the client's. */
  async function open(passed: PassedRequest, request: Request, listener: UpgradingServer | null): Promise<Response> {
    if (!listener || is_stopping) throw new ServiceError('SERVICE_STOPPING', {});
    const { server_id, server_address, client, is_by_path, has_presence } = passed;
    const handshake = readHandshake(passed, request);
    const connection = has_presence ? await admit(server_id, handshake) : undefined;
    if (connection) await stopEnded(connection);
    const headers = toServerHeaders(request.headers, client, { is_by_path });
    if (connection) {
      headers.delete('authorization');
      headers.set(PLAYER_HEADER, connection.player_id);
    }
    const { target, protocols } = handshake;
    const url = `ws://${server_address}${target}`;
    const socket = await openServerSocket({ server_id, url, headers, protocols }).catch((error: unknown) => {
      if (connection) endConnection(connection, { may_come_back: true });
      throw error;
    });
    const passed_socket = addSocket(socket, { ...passed, connection });
    noteSocket(passed_socket, request, listener);
    const protocol = socket.protocol || handshake.token_protocol;
    const accepted = {
      data: passed_socket,
      ...(protocol !== undefined && { headers: { 'sec-websocket-protocol': protocol } }),
    };
    if (is_stopping) {
      passed_socket.close(CLOSE_CODES.restarting, '');
      throw new ServiceError('SERVICE_STOPPING', {});
    }
    if (!listener.upgrade(request, accepted)) {
      passed_socket.close(CLOSE_CODES.lost, '');
      throw new ServiceError('GATEWAY_SOCKET_REFUSED', { server_id });
    }
    // The connection is a WebSocket now, so no client receives this.
    return new Response();
  }

  async function admit(server_id: string, { token }: Handshake): Promise<ReportedConnection> {
    if (token === undefined) throw new ServiceError('GATEWAY_TOKEN_REQUIRED', {});
    const admitted = await presence.admit(server_id, token);
    const connection: ReportedConnection = { ...admitted, socket: undefined, stopped: undefined };
    of_players.set(connection.player_id, [...(of_players.get(connection.player_id) ?? []), connection]);
    return connection;
  }

  /**
   * Stops the connections of a player to this process that are over according to the database. A connection enters the
   * list before the database is read, so a later one that replaces it finds it there, or, on another machine, wakes
   * `startCheckingConnections`.
   */
  async function stopEnded(connection: ReportedConnection): Promise<void> {
    try {
      const connections = of_players.get(connection.player_id) ?? [];
      for (const [over, reason] of await presence.overAmong(connections)) stop(over, reason);
    } catch (error) {
      endConnection(connection, { may_come_back: true });
      throw error;
    }
  }

  function stop(connection: ReportedConnection, reason: StopReason): void {
    connection.stopped ??= reason;
    const { code, reason: text } = STOP[connection.stopped];
    connection.socket?.stop(code, text);
  }

  /** Removes a player's connection from the list, and reports its end. */
  function endConnection(connection: ReportedConnection, how: { may_come_back: boolean }): void {
    const others = of_players.get(connection.player_id)?.filter((one) => one !== connection) ?? [];
    if (others.length > 0) of_players.set(connection.player_id, others);
    else of_players.delete(connection.player_id);
    connection.end(how);
  }

  function addSocket(socket: Bun.WebSocket, { traffic, connection, onEnd: free }: Opened): PassedSocket {
    const noteClosed = traffic.countOpened('sockets');
    const onEnd = ({ may_come_back }: { may_come_back: boolean }) => {
      noteSocketEnd(passed_socket);
      noteClosed();
      free();
      open_sockets.delete(passed_socket);
      // These clients come back, so their seats are kept, as after a lost connection.
      const is_given_up = is_stopping || connection?.stopped === 'given_up';
      if (connection) endConnection(connection, { may_come_back: may_come_back || is_given_up });
    };
    const passed_socket = new PassedSocket(socket, { traffic, onEnd });
    open_sockets.add(passed_socket);
    if (connection) {
      connection.socket = passed_socket;
      if (connection.stopped) stop(connection, connection.stopped);
    }
    return passed_socket;
  }

  return {
    open,
    /** Returns the connections of players whom the gateway reports. */
    connections: (): ReportedConnection[] => [...of_players.values()].flat(),
    /** Closes the connection of a player, also one that is being opened. */
    stop,
    /** Returns how many are open. */
    count: (): number => open_sockets.size,
    /** Closes all WebSockets, whose players may connect again. */
    stopAll(): void {
      is_stopping = true;
      for (const passed_socket of [...open_sockets]) passed_socket.stop(CLOSE_CODES.restarting, 'the service restarts');
    },
  };
}

/**
 * Reads a handshake. Takes the player's token out of it if the gateway reports the players. Throws
 * API_BAD_SOCKET_HANDSHAKE for a list of protocols that Bun would not send.
 */
function readHandshake({ target, has_presence }: PassedRequest, { headers }: Request): Handshake {
  const list = headers.get('sec-websocket-protocol') ?? '';
  const protocols = [...new Set(list.split(',').map((one) => one.trim()))].filter((one) => one !== '');
  if (!protocols.every(isToken)) {
    const error = 'the header Sec-WebSocket-Protocol is wrong. Send tokens, separated by commas';
    throw new ServiceError('API_BAD_SOCKET_HANDSHAKE', { error });
  }
  if (has_presence) return takePlayerToken({ target, protocols }, headers);
  return { target, protocols, token: undefined, token_protocol: undefined };
}
