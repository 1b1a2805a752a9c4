import type { PeerServer } from './addresses.ts';
import type { Exchange } from './exchange.ts';

export const WATCH_PATH = '/watch';

/** Upgrades requests at `WATCH_PATH` to WebSockets of the channel. */
export interface SocketUpgrader {
  /** Upgrades a request to a WebSocket. Throws the error that a refused request is answered with. */
  upgrade(exchange: Exchange, server: UpgradingServer): Promise<void>;
}

/** The part of Bun's server for WebSockets. */
export interface UpgradingServer extends PeerServer {
  // biome-ignore lint/suspicious/noExplicitAny: only the channel knows what its sockets hold.
  upgrade(request: Request, options: { data: any; headers?: Record<string, string> }): boolean;
  publish(topic: string, text: string): number;
  /** Sets how long the connection of a request may be silent; at most 255 s. */
  timeout(request: Request, seconds: number): void;
}
