import { openSocket } from '../web-socket.ts';

/** The answer to a find, as far as bots use it. */
export interface Seat {
  lobby: { lobby_id: string };
  ports: Record<string, { hostname: string; port: number | null; is_tls: boolean }>;
  player: { token: string };
}

/** A connection of a player to a game server. */
export interface Connection {
  /** Resolves when the server has closed it. */
  closed: Promise<void>;
  close(): void;
}

const OPEN_WITHIN_MS = 10_000;

/** The protocols of a version's ports, by their labels. */
export type Protocols = ReadonlyMap<string, string>;

/** Protocols of ports that take a WebSocket. */
const WITH_SOCKETS: readonly (string | undefined)[] = ['http', 'https'];

/**
 * Opens a WebSocket to the first port of a seat's lobby that takes one, with the player's token as `token` and
 * `player_token` in the query. Returns undefined if there is no such port. Throws if the server refuses the WebSocket.
 */
export async function connectTo(
  { ports, player }: Seat,
  { protocols, signal }: { protocols: Protocols; signal: AbortSignal },
): Promise<Connection | undefined> {
  const usable = Object.entries(ports).filter(([label]) => WITH_SOCKETS.includes(protocols.get(label)));
  const port = usable.map(([, one]) => one).find((one) => one.port !== null);
  if (!port) return undefined;
  const query = new URLSearchParams({ token: player.token, player_token: player.token });
  const url = `${port.is_tls ? 'wss' : 'ws'}://${port.hostname}:${port.port}/?${query}`;
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
