import { ServiceError } from '../../src/platform/errors.ts';
import type { ServiceEvent } from '../../src/platform/events.ts';
import { createAddresses, readTrustedProxies } from '../../src/platform/http/addresses.ts';
import { createApp } from '../../src/platform/http/app.ts';
import type { Audit } from '../../src/platform/http/audit.ts';
import type { Tenants } from '../../src/platform/http/authorization.ts';
import type { Gateway } from '../../src/platform/http/gateway.ts';
import { serverLimits } from '../../src/platform/http/ports/listen.ts';
import { createRateLimiter } from '../../src/platform/http/rate-limits.ts';
import { createRays, type Rays } from '../../src/platform/http/rays.ts';
import type { Route } from '../../src/platform/http/route.ts';
import type { ServedSites } from '../../src/platform/http/site.ts';
import type { Limits } from '../../src/platform/limits/limits.ts';
import type { Tokens } from '../../src/platform/tokens/tokens.ts';
import type { Watch } from '../../src/platform/watch/watch.ts';
import { type Api, createApi } from './api.ts';
import { makeTokenMaker } from './token-maker.ts';

/** The HTTP layer of a service with the routes of a test, without a database. */
export interface TestApp extends AsyncDisposable {
  api: Api;
  tokens: Tokens;
  events: ServiceEvent[];
  /** Answers waiting requests as a service that stops, but keeps listening. */
  announceStop(): void;
}

interface TestAppOptions {
  request_timeout_ms?: number;
  public_url?: string;
  /** Returns whether a caller has access; denies all if left out. */
  authorize?: Tenants['authorize'];
  /** None if they are left out. */
  limits?: Limits;
  /** None if they are left out. */
  sites?: Partial<ServedSites>;
  /** Events are added to this list. */
  rays?: Rays;
  /** As in the setting. */
  trusted_proxies?: string;
}

export async function openTestApp(routes: Route[], options: TestAppOptions = {}): Promise<TestApp> {
  const {
    request_timeout_ms = 10_000,
    public_url = 'https://play.example.com',
    authorize = refuse,
    limits = NO_LIMITS,
  } = options;
  const { tokens } = await makeTokenMaker();
  const emitted: ServiceEvent[] = [];
  const events = { emit: (event: ServiceEvent) => void emitted.push(event) };
  const addresses = createAddresses(readTrustedProxies(options.trusted_proxies));
  const stopping = new AbortController();
  const outside = {
    routes,
    tokens,
    audit: NO_AUDIT,
    tenants: { authorize, requireNotRevoked: () => {}, topicsOf: () => [] },
    watch: NO_WATCH,
    sockets: NO_SOCKETS,
    sites: { ...NO_SITES, ...options.sites },
    gateway: NO_GATEWAY,
    rays: options.rays ?? createRays(),
    addresses,
    events,
    rate_limiter: createRateLimiter({ host: '0.0.0.0', limits, events, onRefused() {} }),
  };
  const urls = { public_url, local_url: 'http://127.0.0.1:8080' };
  const app = createApp({ ...outside, ...urls, request_timeout_ms, stopping: stopping.signal });
  const address = { hostname: '127.0.0.1', port: 0 };
  const server = Bun.serve({ ...address, ...serverLimits(request_timeout_ms), fetch: app.fetch });
  return {
    api: createApi(server.url.origin),
    tokens,
    events: emitted,
    announceStop: () => stopping.abort(),
    [Symbol.asyncDispose]: () => server.stop(true),
  };
}

/** No request is for a game server. */
export const NO_GATEWAY: Gateway = {
  findByHost: () => undefined,
  findByPath: () => undefined,
  stop() {},
  drain: async () => {},
};

/** Records nothing. */
export const NO_AUDIT: Audit = { record: (_change, act) => act() };

/** None of the routes can be watched. */
const NO_WATCH: Pick<Watch, 'answer' | 'readIndex'> = {
  answer: () => Promise.reject(new Error('nothing can be watched here')),
  readIndex: () => undefined,
};
const NO_LIMITS: Limits = { count: () => undefined, [Symbol.dispose]() {} };
const NO_SOCKETS = { upgrade: () => Promise.reject(new Error('there are no sockets here')) };
const NO_SITES = { find: async () => undefined, findByOrigin: async () => undefined, topicsOf: () => [] };

async function refuse(): Promise<never> {
  throw new ServiceError('GAME_NOT_FOUND', {});
}
