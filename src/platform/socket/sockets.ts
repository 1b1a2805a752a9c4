import type { Clock } from '../clock.ts';
import { ServiceError } from '../errors.ts';
import type { Events } from '../events.ts';
import { readBearer } from '../http/authentication.ts';
import { asksForSocket, checkHandshake } from '../http/handshake.ts';
import { noteSocket, noteSocketEnd } from '../http/ports/connections-in-use.ts';
import { type CountedClient, keyOf } from '../http/rate-limits.ts';
import type { SocketUpgrader, UpgradingServer } from '../http/upgrades.ts';
import { CallerSlots } from '../limits/caller-slots.ts';
import { inEachMinute } from '../limits/limit.ts';
import type { Caller } from '../tokens/caller.ts';
import { createAudiences } from './audiences.ts';
import { CLOSE, SUBPROTOCOL } from './frames.ts';
import { createSubscriptionAuthorizer, type SubscriptionAuthorizerDependencies } from './subscription-authorizer.ts';
import { WatchSocket } from './watch-socket.ts';

const CHECK_EVERY_MS = 1_000;
const RETRY_AFTER_MS = 5_000;
const BEARER_PROTOCOL = 'bearer.';
/** All players behind one address connect again at the same moment after the service was unavailable. */
const UPGRADES = inEachMinute('sockets', 1_200, { by: 'address', counted: 'here' });

export interface SocketsDependencies extends Omit<SubscriptionAuthorizerDependencies, 'origins'> {
  sites: SubscriptionAuthorizerDependencies['origins'];
  clock: Clock;
  events: Events;
  public_url: string;
  sockets_max: number;
  sockets_per_caller_max: number;
}

export interface Sockets extends SocketUpgrader {
  /** Returns how many sockets are open. */
  count(): number;
  /** Closes all sockets with `restarting`, and accepts no more. */
  stop(): void;
}

/** The WebSocket channel at /watch (docs/watch.md). */
export function createSockets(dependencies: SocketsDependencies): Sockets {
  const { clock, rate_limiter, events, public_url, sockets_max, sockets_per_caller_max } = dependencies;
  /** Each with the server through which it connected. */
  const sockets = new Map<WatchSocket, UpgradingServer>();
  const slots = new CallerSlots(sockets_per_caller_max);
  /** How many sockets connected through each server, which has to publish the frames for them. */
  const servers = new Map<UpgradingServer, number>();
  function countSocket(server: UpgradingServer, by: 1 | -1): void {
    const count = (servers.get(server) ?? 0) + by;
    if (count > 0) servers.set(server, count);
    else servers.delete(server);
  }
  function forget(socket: WatchSocket): void {
    const server = sockets.get(socket);
    if (server && sockets.delete(socket)) countSocket(server, -1);
    noteSocketEnd(socket);
  }
  let is_stopping = false;
  let checking: ReturnType<typeof setTimeout> | undefined;

  /** Checks all sockets every second while there are any. */
  function startChecking(): void {
    checking ??= setTimeout(() => {
      checking = undefined;
      for (const socket of sockets.keys()) socket.check();
      if (sockets.size > 0) startChecking();
    }, CHECK_EVERY_MS).unref();
  }

  const authorizer = createSubscriptionAuthorizer({ ...dependencies, origins: dependencies.sites });
  const audiences = createAudiences({
    channels: dependencies.watch.channels,
    publish(shard_name, frame) {
      for (const server of servers.keys()) server.publish(shard_name, frame);
    },
    onFault: (watched, cause) => events.emit({ event: 'watch_failed', watched, cause }),
  });

  function takeSlot(caller: Caller | undefined, client: CountedClient): () => void {
    const key = keyOf(caller, client);
    if (!slots.take(key)) throw tooMany();
    return () => slots.free(key);
  }

  const socket_dependencies = {
    clock,
    events,
    audiences,
    authorizer,
    public_url,
    takeSlot,
    onEnd(socket: WatchSocket, duration_ms: number) {
      forget(socket);
      events.emit({ event: 'socket_closed', duration_ms });
    },
  };

  return {
    async upgrade(exchange, receiving_server) {
      const { request, address, is_of_untrusted_proxy } = exchange;
      // These cannot be read from the request after the upgrade.
      const client = { address, is_of_untrusted_proxy };
      const { headers } = request;
      if (!asksForSocket(request)) throw new ServiceError('WATCH_UPGRADE_REQUIRED', {});
      checkHandshake(request);
      const offered = (headers.get('sec-websocket-protocol') ?? '').split(',').map((name) => name.trim());
      if (!offered.includes(SUBPROTOCOL)) throw new ServiceError('WATCH_SUBPROTOCOL_REQUIRED', {});
      await rate_limiter.count(UPGRADES, undefined, exchange);
      const token = tokenOf(headers, offered);
      const verified = token === undefined ? undefined : await authorizer.readToken(token, exchange);
      if (is_stopping) throw new ServiceError('SERVICE_STOPPING', {});
      if (sockets.size >= sockets_max) throw tooMany();
      const freeSlot = takeSlot(verified?.caller, client);
      const socket = new WatchSocket(socket_dependencies, {
        origin: headers.get('origin'),
        client,
        verified,
        freeSlot,
      });
      const accepted = { data: socket, headers: { 'sec-websocket-protocol': SUBPROTOCOL } };
      sockets.set(socket, receiving_server);
      countSocket(receiving_server, 1);
      startChecking();
      noteSocket(socket, request, receiving_server);
      if (receiving_server.upgrade(request, accepted)) return;
      forget(socket);
      freeSlot();
      throw new ServiceError('WATCH_UPGRADE_REQUIRED', {});
    },
    count: () => sockets.size,
    stop() {
      is_stopping = true;
      clearTimeout(checking);
      for (const socket of sockets.keys()) socket.stop(CLOSE.restarting, 'the service stops');
    },
  };
}

/** Reads the token: browsers can send it only in the list of protocols, other clients may use the header. */
function tokenOf(headers: Headers, offered: string[]): string | undefined {
  const protocol = offered.find((name) => name.startsWith(BEARER_PROTOCOL));
  if (protocol !== undefined) return protocol.slice(BEARER_PROTOCOL.length);
  return readBearer(headers);
}

function tooMany(): ServiceError {
  return new ServiceError('TOO_MANY_SOCKETS', {}, { retry_after_ms: RETRY_AFTER_MS });
}
