import type { ServerWebSocket, WebSocketHandler } from 'bun';

/** Seconds without a frame, or even an answer to a ping, after which a socket is closed. */
const IDLE_TIMEOUT_S = 120;
/** Larger than any body, because a client that does not read skips whole frames and never gets half of one. */
const UNSENT_BYTES_MAX = 32 * 1024 ** 2;
/** The longest frame that any socket of the service accepts. The watch channel accepts less. */
const FRAME_BYTES_MAX = 1024 ** 2;

/** What handles one socket. Bun calls its methods. */
export interface SocketHandler {
  open(socket: ServerWebSocket<SocketHandler>): void;
  message(data: string | Uint8Array): void;
  /** Some of what was buffered has been sent. */
  drain(): void;
  close(code: number, reason: string): void;
}

/** The handlers for Bun's servers, which have one for all their sockets. */
export const SOCKET_HANDLERS: WebSocketHandler<SocketHandler> = {
  idleTimeout: IDLE_TIMEOUT_S,
  sendPings: true,
  maxPayloadLength: FRAME_BYTES_MAX,
  backpressureLimit: UNSENT_BYTES_MAX,
  closeOnBackpressureLimit: true,
  perMessageDeflate: false,
  open: (socket) => socket.data.open(socket),
  message: (socket, data) => socket.data.message(data),
  drain: (socket) => socket.data.drain(),
  close: (socket, code, reason) => socket.data.close(code, reason),
};
