import { Type } from '@sinclair/typebox';
import type { Server, ServerWebSocket } from 'bun';
import { type Database, type DatabaseAddress, openDatabase } from '../../../src/platform/database/database.ts';
import { ServiceError } from '../../../src/platform/errors.ts';
import type { ServiceEvent } from '../../../src/platform/events.ts';
import { createAddresses } from '../../../src/platform/http/addresses.ts';
import { createApp } from '../../../src/platform/http/app.ts';
import { createCors } from '../../../src/platform/http/cors.ts';
import { createRateLimiter } from '../../../src/platform/http/rate-limits.ts';
import { createRays } from '../../../src/platform/http/rays.ts';
import { type Route, watched } from '../../../src/platform/http/route.ts';
import { inEachMinute } from '../../../src/platform/limits/limit.ts';
import { openLimits } from '../../../src/platform/limits/limits.ts';
import { SOCKET_HANDLERS } from '../../../src/platform/socket/socket-handlers.ts';
import { createSockets } from '../../../src/platform/socket/sockets.ts';
import type { WatchSocket } from '../../../src/platform/socket/watch-socket.ts';
import type { Caller } from '../../../src/platform/tokens/caller.ts';
import { createTokens, type Tokens } from '../../../src/platform/tokens/tokens.ts';
import { openFeed } from '../../../src/platform/watch/feed.ts';
import { touch } from '../../../src/platform/watch/versions.ts';
import { watchLog, watchState } from '../../../src/platform/watch/views.ts';
import { openWatch } from '../../../src/platform/watch/watch.ts';
import { type Api, createApi } from '../api.ts';
import { createTestClock } from '../clock.ts';
import { NO_AUDIT, NO_GATEWAY } from '../http-app.ts';
import { makeTokenMaker } from '../token-maker.ts';
import { createNumbers, increaseNumber, readNumber } from './numbers.ts';

/** The WebSocket channel of a service whose views are numbers, each with a name. */
export interface SocketApp extends AsyncDisposable {
  api: Api;
  url: string;
  tokens: Tokens;
  clock: ReturnType<typeof createTestClock>;
  /** All events that it logged. */
  events: ServiceEvent[];
  server: Server<WatchSocket>;
  /** The server's end of each open socket. */
  sockets: Set<ServerWebSocket<WatchSocket>>;
  /** The number of listeners of each topic. */
  listeners: Map<string, number>;
  /** Increments the number under a name. */
  increment(name: string): Promise<void>;
  /** Adds to the number under a name. */
  incrementBy(name: string, by: number): Promise<void>;
  /** Revokes a caller's right to see numbers of games, and increments a number in the same commit. */
  revoke(identity_id: string, name: string): Promise<void>;
  /** Announces that a caller's rights may have changed. */
  touchRights(identity_id: string): Promise<void>;
  /** Lets authorization checks wait until the returned function is called. */
  holdChecks(): () => void;
  /** Lets authorization checks fail with the error, until the returned function is called. */
  failChecks(error: Error): () => void;
  /** Holds the results of authorizations, counts them, and releases them. */
  holdAuthorizations(): { readonly held: number; release(): void };
  /** Returns a token of a new caller, or of this one. */
  issue(caller?: Caller, lifetime_ms?: number): Promise<string>;
  stop(): void;
}

export interface SocketAppOptions {
  /** Returns further routes. */
  routesOf?: (database: Database) => Route[];
  sockets_max?: number;
  sockets_per_caller_max?: number;
  watchers_max?: number;
  watchers_per_caller_max?: number;
  /** The factor of the usual limits; by default a million. */
  limits_scale?: number;
  /** Number of characters that make each body longer. */
  filling?: number;
}

const NUMBER = Type.Object({ number: Type.Integer(), filling: Type.String() });
const LINES = Type.Object({ lines: Type.Array(Type.Integer()) });
const LINES_MAX = 256;
/** Returns the path of a number that can be watched. */
export const pathOfNumber = (name: string): string => `/matchmaker/numbers/${name}`;
export const GAME_ID = '01a1fd9a-cb99-73a7-8820-17ad6d1ab0a0';

/** Opens the channel of one process. Several on one database are like several processes. */
export async function openSocketApp(address: DatabaseAddress, options: SocketAppOptions = {}): Promise<SocketApp> {
  const { sockets_max = 20_000, sockets_per_caller_max = 2_000, filling: filling_length = 0 } = options;
  const { watchers_max = 20_000, watchers_per_caller_max = 2_000 } = options;
  await using opened = new AsyncDisposableStack();
  const database = opened.use(openDatabase(address, 4));
  await createNumbers(database.queries);
  const logged: ServiceEvent[] = [];
  const events = { emit: (event: ServiceEvent) => void logged.push(event) };
  const inner_feed = opened.use(await openFeed(database, events));
  const listeners = new Map<string, number>();
  const count = (topic: string, more: number) => {
    const now = (listeners.get(topic) ?? 0) + more;
    if (now === 0) listeners.delete(topic);
    else listeners.set(topic, now);
  };
  const feed: typeof inner_feed = {
    ...inner_feed,
    subscribe(topic, onChange) {
      const unsubscribe = inner_feed.subscribe(topic, onChange);
      count(topic, 1);
      return () => {
        count(topic, -1);
        unsubscribe();
      };
    },
  };
  const watch = await openWatch(database.queries, feed, {
    watch_hold_ms: 60_000,
    watchers_max,
    watchers_per_caller_max,
  });

  const filling = 'x'.repeat(filling_length);
  const numbers = {
    topics: (name: string) => [`number:${name}`],
    read: (name: string) => readNumber(database.queries, name),
  };
  /** A log with as many lines as the number. */
  const lines = {
    topics: numbers.topics,
    async last(name: string) {
      return lines.from(name, Math.max(0, (await readNumber(database.queries, name)) - LINES_MAX));
    },
    async from(name: string, number: number) {
      const end = await readNumber(database.queries, name);
      const content = Array.from(
        { length: Math.max(0, Math.min(end - number, LINES_MAX)) },
        (_, line) => number + line,
      );
      return { content, next: number + content.length };
    },
  };
  const reading = { summary: 'A number.', allow: ['identity'], free_params: ['name'], response: NUMBER } as const;
  const toBody = (number: number) => ({ number, filling });
  const routes = [
    watched('/matchmaker/numbers/:name', reading, ({ params }) => watchState(numbers, params.name, toBody)),
    watched('/matchmaker/rare/:name', { ...reading, limit: inEachMinute('rare', 3) }, ({ params }) =>
      watchState(numbers, params.name, toBody),
    ),
    watched('/cloud/numbers/:name', reading, ({ params }) => watchState(numbers, params.name, toBody)),
    watched('/cloud/games/:game_id/numbers/:name', { ...reading, access: 'read' }, ({ params }) =>
      watchState(numbers, params.name, toBody),
    ),
    watched('/matchmaker/open/:name', { ...reading, allow: 'anyone' }, ({ params }) =>
      watchState(numbers, params.name, toBody),
    ),
    watched('/matchmaker/lines/:name', { ...reading, response: LINES }, ({ params }) =>
      watchLog(lines, params.name, (view) => ({ lines: view })),
    ),
    watched('/matchmaker/open-lines/:name', { ...reading, allow: 'anyone', response: LINES }, ({ params }) =>
      watchLog(lines, params.name, (view) => ({ lines: view })),
    ),
    ...(options.routesOf?.(database) ?? []),
  ];

  const { key } = await makeTokenMaker();
  const clock = createTestClock();
  const tokens = await createTokens(key, clock);
  const revoked = new Set<string>();
  const rightsOf = (caller: Caller) => (caller.kind === 'identity' ? [`rights:${caller.identity_id}`] : []);
  let held = Promise.resolve();
  let check_failure: Error | undefined;
  let authorizations = 0;
  let authorizations_held = Promise.resolve();
  const tenants = {
    async authorize(caller: Caller) {
      await held;
      if (check_failure) throw check_failure;
      const is_revoked = caller.kind === 'identity' && revoked.has(caller.identity_id);
      authorizations += 1;
      await authorizations_held;
      if (is_revoked) throw new ServiceError('GAME_NOT_FOUND', {});
    },
    requireNotRevoked: () => {},
    topicsOf: rightsOf,
  };
  const sites = { find: async () => undefined, findByOrigin: async () => undefined, topicsOf: () => [] };
  const public_url = 'https://muster.example';
  const cors = createCors([public_url]);
  const { limits_scale: scale = 1_000_000 } = options;
  const limits = await openLimits({ clock, events, is_on: true, scale, store: undefined, epoch: '' });
  const addresses = createAddresses([]);
  const base = {
    routes,
    tokens,
    tenants,
    audit: NO_AUDIT,
    watch,
    sites,
    clock,
    events,
    public_url,
    addresses,
    limits,
    rate_limiter: createRateLimiter({ host: '0.0.0.0', limits, events, onRefused() {} }),
  };
  const channel = createSockets({ ...base, cors, sockets_max, sockets_per_caller_max });
  const stopping = new AbortController();
  const app = createApp({
    ...base,
    sockets: channel,
    gateway: NO_GATEWAY,
    rays: createRays(),
    local_url: 'http://127.0.0.1:8080',
    request_timeout_ms: 90_000,
    stopping: stopping.signal,
  });
  const sockets: SocketApp['sockets'] = new Set();
  const handlers = SOCKET_HANDLERS;
  const server: Server<WatchSocket> = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch: app.fetch,
    websocket: {
      ...handlers,
      open(socket: ServerWebSocket<WatchSocket>) {
        sockets.add(socket);
        return handlers.open?.(socket);
      },
      close(socket: ServerWebSocket<WatchSocket>, code, reason) {
        sockets.delete(socket);
        return handlers.close?.(socket, code, reason);
      },
    },
  });
  const stop = () => {
    stopping.abort();
    watch.release();
    channel.stop();
    watch.release();
  };
  opened.defer(async () => {
    stop();
    await server.stop(true);
  });
  const url = `http://127.0.0.1:${server.port}`;
  const everything = opened.move();
  return {
    api: createApi(url),
    url,
    tokens,
    clock,
    events: logged,
    server: server as Server<WatchSocket>,
    sockets,
    listeners,
    increment: (name) => database.transact((tx) => increaseNumber(tx, name)),
    incrementBy: (name, by) => database.transact((tx) => increaseNumber(tx, name, by)),
    async revoke(identity_id, name) {
      revoked.add(identity_id);
      await database.transact(async (tx) => {
        await touch(tx, [`rights:${identity_id}`]);
        await increaseNumber(tx, name);
      });
    },
    touchRights: (identity_id) => database.transact(async (tx) => void (await touch(tx, [`rights:${identity_id}`]))),
    holdChecks() {
      const { promise, resolve } = Promise.withResolvers<void>();
      held = promise;
      return resolve;
    },
    failChecks(error) {
      check_failure = error;
      return () => {
        check_failure = undefined;
      };
    },
    holdAuthorizations() {
      const { promise, resolve } = Promise.withResolvers<void>();
      authorizations_held = promise;
      const before = authorizations;
      return {
        get held() {
          return authorizations - before;
        },
        release: resolve,
      };
    },
    issue: async (caller = { kind: 'identity', identity_id: crypto.randomUUID() }, lifetime_ms) =>
      await tokens.issue(caller, lifetime_ms === undefined ? {} : { lifetime_ms }),
    stop,
    [Symbol.asyncDispose]: () => everything.disposeAsync(),
  };
}
