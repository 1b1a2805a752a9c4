import { ServiceError } from '../errors.ts';
import type { Events } from '../events.ts';
import type { Addresses } from './addresses.ts';
import { type ApiOptions, createApi } from './api.ts';
import { createOriginAuthenticator } from './authentication.ts';
import { createTextReader } from './body.ts';
import { createCors } from './cors.ts';
import { createAnswerer } from './exchange.ts';
import { createHostReader } from './host.ts';
import { Listeners } from './listeners.ts';
import type { Rays } from './rays.ts';
import { createDeadlineOptions } from './request-deadline.ts';
import { type Site, type Sites, Visit } from './site.ts';
import type { UpgradingServer } from './upgrades.ts';

/** Shown in the log instead of a route. */
const [NO_ROUTE, SITE] = ['-', 'site'];
/** The part of a request's time in which its body must arrive. */
const BODY_SHARE = 0.4;

export interface AppOptions extends ApiOptions {
  sites: Sites;
  addresses: Addresses;
  rays: Rays;
  events: Events;
  public_url: string;
  local_url: string;
  request_timeout_ms: number;
}

/** Creates what answers all requests at the port, whether they are for the API or for a site. Does not listen. */
export function createApp(options: AppOptions) {
  const { sites, rate_limiter, public_url, local_url, request_timeout_ms, stopping } = options;
  const own_urls = [public_url, local_url];
  const readHost = createHostReader(own_urls);
  const listeners = new Listeners<UpgradingServer>();
  const deadlines = createDeadlineOptions(request_timeout_ms, stopping);
  const answer = createAnswerer({ ...options, deadlines, listeners });
  const api = createApi(options, {
    answer,
    listeners,
    cors: createCors(own_urls),
    authenticateByOrigin: createOriginAuthenticator(sites),
    readText: createTextReader(Math.ceil(request_timeout_ms * BODY_SHARE)),
  });

  /** A host that is not the service's own belongs to a site, or is another name of the API. */
  async function answerAtOtherHost(request: Request): Promise<Response> {
    const failed = (failure: unknown): Site => ({ respond: () => Promise.reject(failure) });
    const site = await sites.find(request.url).catch(failed);
    if (!site) return await api.fetch(request);
    return await answer(request, SITE, (exchange) => site.respond(new Visit(exchange, rate_limiter)));
  }

  return {
    /** Elysia's app, from which the API document is made. */
    api: api.router,
    fetch(request: Request, server: UpgradingServer): Response | Promise<Response> {
      listeners.note(request, server);
      switch (readHost(request)) {
        case 'own':
          return api.fetch(request);
        case 'other':
          return answerAtOtherHost(request);
        case 'invalid':
          return answer(request, NO_ROUTE, () => Promise.reject(new ServiceError('API_BAD_HOST', {})));
      }
    },
  };
}
