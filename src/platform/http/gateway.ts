import type { WebRequest } from './site.ts';
import type { UpgradingServer } from './upgrades.ts';

/** Leads requests to game servers. */
export interface Gateway {
  /** Returns what answers a request whose host names a game server; undefined for any other request. */
  findByHost(request: Request): GatewayRequest | undefined;
  /** Returns what answers a request whose path names a game server, at a host of the API; undefined for any other request. */
  findByPath(request: Request): GatewayRequest | undefined;
  /** Waits until players have left by themselves, as long as the settings say. They are served meanwhile. */
  drain(): Promise<void>;
  /** Closes all WebSockets to game servers. Their clients connect again. */
  stop(): void;
}

/** A request to a game server. */
export interface GatewayRequest {
  respond(web_request: WebRequest, server: UpgradingServer | null): Promise<Response>;
}
