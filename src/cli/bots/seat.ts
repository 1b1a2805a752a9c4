import { type BotSeat, toSocketUrl } from '../../shared/ports.ts';
import { openSocket } from '../web-socket.ts';

/** The answer to a find, as far as bots use it. */
export interface Seat extends BotSeat {
  lobby: { lobby_id: string };
}

/** A connection of a player to a game server. */
export interface Connection {
  /** Resolves when the server has closed it. */
  closed: Promise<void>;
  close(): void;
}

const OPEN_WITHIN_MS = 10_000;

/**
 * Opens a WebSocket to the first port of a seat's lobby that takes one. Returns undefined if there is no such port. Throws
 * if the server refuses the WebSocket.
 */
export async function connectTo(
  seat: Seat,
  { socket_labels, signal }: { socket_labels: readonly string[]; signal: AbortSignal },
): Promise<Connection | undefined> {
  const url = toSocketUrl(seat, socket_labels);
  if (url === undefined) return undefined;
  const socket = openSocket(url);
  const closed = new Promise<void>((resolve) => socket.addEventListener('close', () => resolve()));
  const opened = new Promise<void>((resolve, reject) => {
    const fail = (reason: string) => () => reject(new Error(reason));
    socket.addEventListener('open', () => resolve());
    socket.addEventListener('error', fail('the game server refused the WebSocket'));
    AbortSignal.any([signal, AbortSignal.timeout(OPEN_WITHIN_MS)]).addEventListener('abort', fail('no answer in time'));
  });
  try {
    await opened;
  } catch (error) {
    socket.close();
    throw error;
  }
  return { closed, close: () => socket.close() };
}
