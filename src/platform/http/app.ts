import { ServiceError } from '../errors.ts';
import type { Events } from '../events.ts';
import type { Addresses } from './addresses.ts';
import { type ApiOptions, createApi } from './api.ts';
import { createOriginAuthenticator } from './authentication.ts';
import { createTextReader } from './body.ts';
import { createCors } from './cors.ts';
import { createAnswerer, type Exchange, NO_ROUTE } from './exchange.ts';
import type { Gateway, GatewayRequest } from './gateway.ts';
import { createHostReader } from './host.ts';
import { ReceivingServers } from './ports/receiving-servers.ts';
import type { Rays } from './rays.ts';
import { createDeadlineOptions } from './request-deadline.ts';
import { type ServedSites, type Site, WebRequest } from './site.ts';
import type { UpgradingServer } from './upgrades.ts';

/** Shown in the log instead of a route. */
const [SITE, GAME_SERVER] = ['site', 'gateway'];
/** The part of a request's time in which its body must arrive. */
const BODY_SHARE = 0.4;

export interface AppOptions extends ApiOptions {
  sites: ServedSites;
  gateway: Gateway;
  addresses: Addresses;
  rays: Rays;
  events: Events;
  public_url: string;
  local_url: string;
  request_timeout_ms: number;
}

/** Creates what answers all requests at the port, for the API, a site or a game server. Does not listen. */
export function createApp(options: AppOptions) {
  const { sites, gateway, addresses, rate_limiter, public_url, local_url, request_timeout_ms, stopping } = options;
  const own_urls = [public_url, local_url];
  const readHost = createHostReader(own_urls);
  const receiving_servers = new ReceivingServers<UpgradingServer>();
  const deadlines = createDeadlineOptions(request_timeout_ms, stopping);
  const answer = createAnswerer({ ...options, deadlines, receiving_servers });
  const api = createApi(options, {
    answer,
    receiving_servers,
    cors: createCors(own_urls),
    authenticateByOrigin: createOriginAuthenticator(sites, rate_limiter),
    readText: createTextReader(Math.ceil(request_timeout_ms * BODY_SHARE)),
  });

  function answerAtOwnHost(request: Request): Response | Promise<Response> {
    return answerForGameServer(request, gateway.findByPath(request)) ?? api.fetch(request);
  }

  /** A host that is not the service's own belongs to a site, or is another name of the API. */
  async function answerAtOtherHost(request: Request, server: UpgradingServer): Promise<Response> {
    const failed = (failure: unknown): Site => ({ respond: () => Promise.reject(failure) });
    const countLookup = () =>
      rate_limiter.countHostLookup({
        address: addresses.clientOf(request, server),
        is_of_untrusted_proxy: addresses.isOfUntrustedProxy(request, server),
      });
    const site = await sites.find(request.url, countLookup).catch(failed);
    if (!site) return await answerAtOwnHost(request);
    return await answer(request, SITE, (exchange) => site.respond(new WebRequest(exchange, rate_limiter)));
  }

  /** Answers a request for a game server; undefined for any other request. */
  function answerForGameServer(request: Request, found: GatewayRequest | undefined): Promise<Response> | undefined {
    if (!found) return undefined;
    const toWebRequest = (exchange: Exchange) => new WebRequest(exchange, rate_limiter);
    return answer(request, GAME_SERVER, (exchange) =>
      found.respond(toWebRequest(exchange), receiving_servers.of(request)),
    );
  }

  return {
    /** Elysia's app, from which the API document is made. */
    api: api.router,
    fetch(request: Request, server: UpgradingServer): Response | Promise<Response> {
      receiving_servers.note(request, server);
      switch (readHost(request)) {
        case 'own':
          return answerAtOwnHost(request);
        case 'other':
          return answerForGameServer(request, gateway.findByHost(request)) ?? answerAtOtherHost(request, server);
        case 'invalid':
          return answer(request, NO_ROUTE, () => Promise.reject(new ServiceError('API_BAD_HOST', {})));
      }
    },
  };
}
