import type { Config } from './config.ts';
import { EXAMPLES, KEY_EXAMPLES } from './features/examples.ts';
import type { Clock } from './platform/clock.ts';
import type { Events } from './platform/events.ts';
import { toFinding } from './platform/findings.ts';
import { createAddresses } from './platform/http/addresses.ts';
import { createApp } from './platform/http/app.ts';
import type { Audit } from './platform/http/audit.ts';
import type { Tenants } from './platform/http/authorization.ts';
import { createCors } from './platform/http/cors.ts';
import { documentRoutes } from './platform/http/documents/documents.ts';
import type { Gateway } from './platform/http/gateway.ts';
import { type HealthCheck, healthRoutes, type Isolation } from './platform/http/health.ts';
import { createRateLimiter } from './platform/http/rate-limits.ts';
import { createRays, rayRoutes } from './platform/http/rays.ts';
import type { Route } from './platform/http/route.ts';
import type { ServedSites } from './platform/http/site.ts';
import { openLimits } from './platform/limits/limits.ts';
import { Refusals } from './platform/limits/refusals.ts';
import { SOCKET_HANDLERS } from './platform/socket/socket-handlers.ts';
import { createSockets } from './platform/socket/sockets.ts';
import type { Tokens } from './platform/tokens/tokens.ts';
import { RELEASE } from './platform/version.ts';
import type { Watch } from './platform/watch/watch.ts';

interface FrontOptions {
  clock: Clock;
  events: Events;
  tokens: Tokens;
  watch: Watch;
  tenants: Tenants;
  audit: Audit;
  sites: ServedSites;
  gateway: Gateway;
  /** The routes of all features. */
  routes: Route[];
  checks: HealthCheck[];
  /** Problems that an operator should fix, although the service works. */
  warnings: HealthCheck[];
  /** Returns how well game servers are isolated, if that is known. */
  readIsolation: () => Isolation | undefined;
  /** Identifies the database. Its processes count requests together. */
  epoch: string;
}

export type Front = Awaited<ReturnType<typeof openFront>>;

/** Opens the parts that answer requests: rate limits, the WebSocket channel and all routes. Does not listen yet. */
export async function openFront(config: Config, options: FrontOptions) {
  const { clock, events, checks, warnings, readIsolation, epoch } = options;
  const { public_url, local_url, request_timeout_ms } = config;
  await using opened = new AsyncDisposableStack();
  const stopping = new AbortController();
  let is_draining = false;
  const checkStopping: HealthCheck = async () =>
    is_draining || stopping.signal.aborted ? toFinding('SERVICE_STOPPING', 'the service is stopping') : undefined;
  const rays = createRays();
  const refusals = new Refusals(clock);
  const describe = () => ({ app: app.api, routes });
  const examples = { values: EXAMPLES, keys: KEY_EXAMPLES };
  const routes = [
    ...options.routes,
    ...documentRoutes({ describe, version: RELEASE, examples, public_url }),
    ...rayRoutes(rays),
    ...healthRoutes({
      checks: [...checks, checkStopping],
      warnings,
      readIsolation,
      listRefused: () => refusals.list(),
    }),
  ];

  const addresses = createAddresses(config.trusted_proxies, config.proxy_secret);
  const limits = opened.use(await openLimits({ clock, events, ...config.limits, epoch }));
  const rate_limiter = createRateLimiter({
    host: config.host,
    limits,
    events,
    onRefused: ({ name }) => refusals.add(name),
  });
  const shared = { ...options, routes, limits, rate_limiter, public_url };
  const cors = createCors([public_url, local_url]);
  const sockets = createSockets({ ...shared, cors, ...config.sockets });
  const { signal } = stopping;
  const app = createApp({ ...shared, addresses, local_url, request_timeout_ms, sockets, rays, stopping: signal });

  const everything = opened.move();
  return {
    fetch: app.fetch,
    /** Returns how many sockets and polls watch. */
    countWatchers: () => ({ ...options.watch.count(), sockets: sockets.count() }),
    websocket: SOCKET_HANDLERS,
    /** Waits until players have left by themselves. Everything is served meanwhile, but the service is not ready. */
    async drain(): Promise<void> {
      is_draining = true;
      await options.gateway.drain();
    },
    /** Closes all sockets, and answers requests that wait. */
    stop() {
      stopping.abort();
      sockets.stop();
      options.gateway.stop();
    },
    [Symbol.asyncDispose]: () => everything.disposeAsync(),
  };
}
