import type { ServerWebSocket } from 'bun';
import { ServiceError } from '../../platform/errors.ts';
import type { SocketHandler } from '../../platform/socket/socket-handlers.ts';
import { BackPressure } from './back-pressure.ts';
import type { ClientTraffic } from './traffic.ts';

/** How long a server may take to accept a WebSocket. */
const OPEN_WITHIN_MS = 10_000;
/** How long a side may read nothing of what waits for it. */
const STUCK_MAX_MS = 60_000;
/** How long a server may take to answer that the gateway closes its socket. */
const CLOSE_WITHIN_MS = 1_000;
/** Codes of closed sockets (RFC 6455, 7.4). */
export const CLOSE_CODES = {
  /** One side is done. */
  normal: 1_000,
  /** For the server: its client has gone. From a client: a browser leaves or reloads the page. */
  going_away: 1_001,
  /** The connection was lost, or never open. No endpoint sends this code. */
  lost: 1_006,
  /** Too many bytes in a minute. */
  too_much: 1_008,
  /** The service restarts, or the game server has gone; clients connect again. */
  restarting: 1_012,
  /** The game server does not read. */
  too_slow: 1_013,
} as const;
/** The close frame had no code. No endpoint sends this one. */
const WITHOUT_CODE = 1_005;
/** Has no meaning yet. */
const RESERVED = 1_004;

/** Returns the code with which to close the other side, after one side has closed; undefined if that was lost. */
function codeToPassOn(code: number): number | undefined {
  if (code === WITHOUT_CODE) return CLOSE_CODES.normal;
  const is_of_protocol = code >= 1_000 && code < 1_015 && code !== RESERVED && code !== CLOSE_CODES.lost;
  return is_of_protocol || (code >= 3_000 && code < 5_000) ? code : undefined;
}

export interface ServerSocketOptions {
  server_id: string;
  url: string;
  headers: Headers;
  protocols: string[];
}

/** Opens a WebSocket to a server. Throws GATEWAY_SOCKET_REFUSED, also for a server that does not answer in time. */
export async function openServerSocket(options: ServerSocketOptions): Promise<Bun.WebSocket> {
  const { server_id, url, headers, protocols } = options;
  // A short frame could become a long one, and decompressing takes the time of all others.
  const compression = { perMessageDeflate: false };
  const socket_options: Bun.WebSocketOptions = { headers: Object.fromEntries(headers), protocols, ...compression };
  // The DOM's types lack what Bun adds.
  const socket = new WebSocket(url, socket_options as unknown as string[]) as unknown as Bun.WebSocket;
  socket.binaryType = 'arraybuffer';
  const opened = Promise.withResolvers<void>();
  const timer = setTimeout(() => opened.reject(new Error('no answer in time')), OPEN_WITHIN_MS);
  socket.addEventListener('open', () => opened.resolve());
  socket.addEventListener('error', () => opened.reject(new Error('refused')));
  socket.addEventListener('close', () => opened.reject(new Error('closed')));
  try {
    await opened.promise;
    return socket;
  } catch {
    socket.close();
    throw new ServiceError('GATEWAY_SOCKET_REFUSED', { server_id });
  } finally {
    clearTimeout(timer);
  }
}

interface SocketRelayOptions {
  traffic: ClientTraffic;
  /** How long a side may read nothing of what waits for it. */
  stuck_max_ms?: number;
  /**
   * Called once, when the client's side has closed. The client may come back if neither it nor the server closed the
   * connection, or if its browser left the page.
   */
  onEnd(how: { may_come_back: boolean }): void;
}

/** Passes frames between a client and a server until one of them closes. A side that reads slowly slows the other down. */
export class PassedSocket implements SocketHandler {
  readonly #server: Bun.WebSocket;
  readonly #options: SocketRelayOptions;
  #client: ServerWebSocket<SocketHandler> | undefined;
  #to_client: BackPressure | undefined;
  #to_server: BackPressure | undefined;
  /** Frames of the server that came before the client's side was open. */
  #early: (string | ArrayBuffer)[] = [];
  /** How the server or this gateway closed the connection, if it was not the client. */
  #closed: { code: number; reason: string; may_come_back: boolean } | undefined;
  #is_over = false;
  /** Ends the server's socket if it is not closed in time. */
  #ending: Timer | undefined;

  /** `server` is open. */
  constructor(server: Bun.WebSocket, options: SocketRelayOptions) {
    this.#server = server;
    this.#options = options;
    // Only what Bun has read already comes before the client's side is open.
    server.pause();
    server.addEventListener('message', ({ data }) => this.#passToClient(data));
    server.addEventListener('close', ({ code, reason }) => {
      clearTimeout(this.#ending);
      const passed_on = codeToPassOn(code);
      this.#closed ??=
        passed_on === undefined
          ? { code: CLOSE_CODES.restarting, reason: 'the game server has gone', may_come_back: true }
          : { code: passed_on, reason, may_come_back: false };
      this.#client?.close(this.#closed.code, this.#closed.reason);
    });
  }

  open(client: ServerWebSocket<SocketHandler>): void {
    const server = this.#server;
    const { stuck_max_ms = STUCK_MAX_MS } = this.#options;
    this.#client = client;
    this.#to_client = new BackPressure({
      source: server,
      unsentBytes: () => client.getBufferedAmount(),
      stuck_max_ms,
      onStuck: () => client.terminate(),
    });
    this.#to_server = new BackPressure({
      source: client,
      unsentBytes: () => server.bufferedAmount,
      stuck_max_ms,
      onStuck: () => this.#leaveServer(),
    });
    for (const frame of this.#early) client.send(frame);
    this.#early = [];
    if (this.#closed) return void client.close(this.#closed.code, this.#closed.reason);
    server.resume();
    this.#to_client.pauseIfFull();
  }

  message(data: string | Uint8Array): void {
    if (this.#server.readyState !== WebSocket.OPEN) return;
    if (!this.#options.traffic.countReceived(lengthOf(data))) {
      this.#refuseMore();
      return;
    }
    this.#server.send(data);
    this.#to_server?.pauseIfFull();
  }

  drain(): void {
    this.#to_client?.resumeIfAccepted();
  }

  close(code: number, reason: string): void {
    if (this.#is_over) return;
    this.#is_over = true;
    this.#client = undefined;
    this.#early = [];
    this.#to_client?.stop();
    this.#to_server?.stop();
    // The server's answer to the close must be read. A server that never answers may send without end.
    this.#server.resume();
    const passed_on = codeToPassOn(code);
    if (passed_on === undefined) this.#server.close(CLOSE_CODES.going_away, 'the client has gone');
    else this.#server.close(passed_on, reason);
    if (this.#server.readyState !== WebSocket.CLOSED) {
      this.#ending = setTimeout(() => this.#server.terminate(), CLOSE_WITHIN_MS);
    }
    const may_come_back = this.#closed?.may_come_back ?? code === CLOSE_CODES.going_away;
    this.#options.onEnd({ may_come_back: may_come_back || code === CLOSE_CODES.lost });
  }

  /** Closes both sides; the client's as soon as it is open. */
  stop(code: number, reason: string): void {
    this.#closed ??= { code, reason, may_come_back: false };
    if (this.#client) this.#client.close(code, reason);
    else this.#server.close(code, reason);
  }

  /** Closes both sides, although neither is done. */
  #cut(code: number, reason: string): void {
    this.#closed ??= { code, reason, may_come_back: true };
    this.stop(code, reason);
  }

  /** Closes the client's side, and drops what the server has not read. */
  #leaveServer(): void {
    this.#cut(CLOSE_CODES.too_slow, 'the game server does not read');
    this.#server.terminate();
  }

  #refuseMore(): void {
    this.#cut(CLOSE_CODES.too_much, 'too many bytes in a minute');
  }

  #passToClient(frame: string | ArrayBuffer): void {
    if (this.#is_over) return;
    if (!this.#options.traffic.countSent(lengthOf(frame))) {
      this.#refuseMore();
    } else if (this.#client) {
      this.#client.send(frame);
      this.#to_client?.pauseIfFull();
    } else {
      this.#early.push(frame);
    }
  }
}

function lengthOf(frame: string | ArrayBuffer | Uint8Array): number {
  return typeof frame === 'string' ? Buffer.byteLength(frame) : frame.byteLength;
}
