import type { WebSocketHandler } from 'bun';
import type { Clock } from '../clock.ts';
import { ServiceError } from '../errors.ts';
import type { Events } from '../events.ts';
import type { Addresses } from '../http/addresses.ts';
import type { Upgrades, UpgradingServer } from '../http/app.ts';
import { noteEnd, noteSocket } from '../http/connections-in-use.ts';
import { type Counting, nameWatcher } from '../http/counting.ts';
import { readBearer } from '../http/pipeline.ts';
import { inOneMinute } from '../limits/limit.ts';
import type { Caller } from '../tokens/caller.ts';
import { CallerSlots, readCallerKey } from '../watch/caller-slots.ts';
import { type AdmittanceDependencies, createAdmittance } from './admittance.ts';
import { CLOSE, FRAME_BYTES_MAX, SUBPROTOCOL } from './frames.ts';
import { createGroups } from './groups.ts';
import { Session } from './session.ts';

const CHECK_EVERY_MS = 1_000;
/** A socket from which nothing has come for as long, not even an answer to our pings, is closed. */
const IDLE_TIMEOUT_S = 120;
/** More than any body: what is published while a client does not read is left out, not cut. */
const UNSENT_BYTES_MAX = 32 * 1024 ** 2;
const RETRY_AFTER_MS = 5_000;
const BEARER_PROTOCOL = 'bearer.';
/** All who play behind one address come again at one moment when the service was away. */
const UPGRADES = inOneMinute('sockets', 1_200, { by: 'address', counted: 'here' });

export interface SocketsDependencies extends Omit<AdmittanceDependencies, 'origins'> {
  sites: AdmittanceDependencies['origins'];
  clock: Clock;
  addresses: Addresses;
  counting: Counting;
  events: Events;
  public_url: string;
  sockets_max: number;
  sockets_per_caller_max: number;
}

export interface Sockets extends Upgrades {
  /** What Bun calls. */
  handlers: WebSocketHandler<Session>;
  /** Sends everybody away, to come back in a moment, and takes no more. */
  stop(): void;
}

/** The WebSocket channel at /watch (docs/watch.md). */
export function createSockets(dependencies: SocketsDependencies): Sockets {
  const { clock, addresses, counting, events, public_url, sockets_max, sockets_per_caller_max } = dependencies;
  const sessions = new Set<Session>();
  const slots = new CallerSlots(sockets_per_caller_max);
  /** A socket hears what is published by the listener that it came by. */
  const servers = new Set<UpgradingServer>();
  let is_stopping = false;
  const checking = setInterval(() => {
    for (const session of sessions) session.check();
  }, CHECK_EVERY_MS);
  checking.unref();

  const admittance = createAdmittance({ ...dependencies, origins: dependencies.sites });
  const groups = createGroups({
    channels: dependencies.watch.channels,
    publish(key, frame) {
      for (const server of servers) server.publish(key, frame);
    },
  });

  function takeSlot(caller: Caller | undefined, address: string): () => void {
    const name = readCallerKey(nameWatcher(caller, () => address));
    if (!slots.take(name)) throw tooMany();
    return () => slots.free(name);
  }

  const session_dependencies = {
    clock,
    groups,
    admittance,
    public_url,
    takeSlot,
    onEnd(session: Session, duration_ms: number) {
      sessions.delete(session);
      noteEnd(session);
      events.emit({ event: 'socket_closed', duration_ms });
    },
  };

  return {
    async upgrade(request, its_server, headers_of_answer) {
      servers.add(its_server);
      const { headers } = request;
      if (headers.get('upgrade')?.toLowerCase() !== 'websocket') throw new ServiceError('WATCH_UPGRADE_REQUIRED', {});
      const offered = (headers.get('sec-websocket-protocol') ?? '').split(',').map((name) => name.trim());
      if (!offered.includes(SUBPROTOCOL)) throw new ServiceError('WATCH_SUBPROTOCOL_REQUIRED', {});
      const address = addresses.of(request, its_server);
      const counted = { request, server: its_server, address: () => address, headers: headers_of_answer };
      await counting.count(UPGRADES, undefined, counted);
      const token = tokenOf(headers, offered);
      const bearer = token === undefined ? undefined : await admittance.read(token);
      if (is_stopping) throw new ServiceError('SERVICE_STOPPING', {});
      if (sessions.size >= sockets_max) throw tooMany();
      const leave = takeSlot(bearer?.caller, address);
      const session = new Session(session_dependencies, { origin: headers.get('origin'), address, bearer, leave });
      const accepted = { data: session, headers: { 'sec-websocket-protocol': SUBPROTOCOL } };
      sessions.add(session);
      noteSocket(session, request, its_server);
      if (its_server.upgrade(request, accepted)) return;
      sessions.delete(session);
      noteEnd(session);
      leave();
      throw new ServiceError('WATCH_UPGRADE_REQUIRED', {});
    },
    handlers: {
      idleTimeout: IDLE_TIMEOUT_S,
      sendPings: true,
      maxPayloadLength: FRAME_BYTES_MAX,
      backpressureLimit: UNSENT_BYTES_MAX,
      closeOnBackpressureLimit: true,
      perMessageDeflate: false,
      open: (socket) => socket.data.open(socket),
      message: (socket, data) => socket.data.message(data),
      drain: (socket) => socket.data.drain(),
      close: (socket) => socket.data.close(),
    },
    stop() {
      is_stopping = true;
      clearInterval(checking);
      for (const session of sessions) session.stop(CLOSE.restarting, 'the service stops');
    },
  };
}

/** Browsers can send a token only in the list of protocols; others may use the header that every request has. */
function tokenOf(headers: Headers, offered: string[]): string | undefined {
  const protocol = offered.find((name) => name.startsWith(BEARER_PROTOCOL));
  if (protocol !== undefined) return protocol.slice(BEARER_PROTOCOL.length);
  return readBearer(headers);
}

function tooMany(): ServiceError {
  return new ServiceError('TOO_MANY_SOCKETS', {}, { retry_after_ms: RETRY_AFTER_MS });
}
