import { Elysia } from 'elysia';
import { ServiceError } from '../errors.ts';
import { toResponse } from './answers.ts';
import { describeRoute } from './documents/openapi.ts';
import { type Answerer, type Exchange, NO_ROUTE } from './exchange.ts';
import { pathOf, type RawParams } from './path.ts';
import { createPipeline, type PipelineOptions, type PipelineParts } from './pipeline.ts';
import type { ReceivingServers } from './ports/receiving-servers.ts';
import type { Route } from './route.ts';
import {
  assertDenyByDefault,
  assertNamedOnce,
  createMismatchCheck,
  createNotFound,
  splitPaths,
} from './route-table.ts';
import { type SocketUpgrader, type UpgradingServer, WATCH_PATH } from './upgrades.ts';

const NO_PARAMS: RawParams = {};

export interface ApiOptions extends PipelineOptions {
  routes: Route[];
  sockets: SocketUpgrader;
}

interface ApiParts extends PipelineParts {
  answer: Answerer;
  receiving_servers: ReceivingServers<UpgradingServer>;
}

/** The parts of Elysia's context that a route uses. */
interface Matched {
  request: Request;
  params: RawParams | undefined;
}

/** Creates the API: the route table on Elysia's router. */
export function createApi(options: ApiOptions, parts: ApiParts) {
  const router = createRouter(options, parts, 'http');
  // Compiled when needed: most services are reached by http, even if a proxy serves https.
  let tls_router: typeof router | undefined;
  return {
    /** Elysia's app, from which the API document is made. */
    router,
    fetch(request: Request): Response | Promise<Response> {
      if (!request.url.startsWith('https:')) return router.fetch(request);
      tls_router ??= createRouter(options, parts, 'https');
      return tls_router.fetch(request);
    },
  };
}

function createRouter(options: ApiOptions, parts: ApiParts, scheme: 'http' | 'https') {
  const { routes, sockets } = options;
  const { answer, cors, receiving_servers } = parts;
  assertDenyByDefault(routes);
  assertNamedOnce(routes);
  // Elysia looks for the path's slash from character 7 of a URL on, or from 11 with `standardHostname`. An http URL
  // needs 7, because its host begins there and may have one letter. An https URL needs 11, because its character 7 is
  // the second slash of `https://`.
  const api = new Elysia({ strictPath: true, handler: { standardHostname: scheme === 'https' } });

  const paths = splitPaths(routes);

  for (const route of routes) {
    const { method, path } = route;
    const pipeline = createPipeline(route, options, parts);
    const isMismatch = createMismatchCheck(route, paths);
    const work = (exchange: Exchange, params: RawParams) =>
      isMismatch(params) ? answerUnmatched(exchange) : pipeline(exchange, params);
    // Elysia reads the text of a handler to see what it uses, so `handle` must name `request` and `params`.
    const handle = ({ request, params }: Matched) =>
      answer(request, path, (exchange) => work(exchange, params ?? NO_PARAMS));
    api.route(method, path, handle, { detail: route.is_page ? { hide: true } : describeRoute(route) });
    // Bun sends the headers of the GET and cancels its body. Elysia would read the whole body to know its length.
    if (method === 'GET') api.route('HEAD', path, handle, { detail: { hide: true } });
  }

  async function upgrade(exchange: Exchange): Promise<Response> {
    const { request } = exchange;
    const server = receiving_servers.of(request);
    if (!server) throw new ServiceError('SERVICE_STOPPING', {});
    Object.assign(exchange.headers, cors.headersFor(request.headers.get('origin'), WATCH_PATH));
    await sockets.upgrade(exchange, server);
    // The connection is a WebSocket now, so no client receives this.
    return new Response();
  }
  const handleUpgrade = ({ request }: Matched) => answer(request, WATCH_PATH, upgrade);
  api.get(WATCH_PATH, handleUpgrade, { detail: { hide: true } });

  const toNotFound = createNotFound([...routes, { method: 'GET', path: WATCH_PATH }]);
  async function answerUnmatched(exchange: Exchange): Promise<Response> {
    const { method, url, headers } = exchange.request;
    const [origin, path] = [headers.get('origin'), pathOf(url)];
    if (method === 'OPTIONS') {
      return toResponse(new Response(null, { status: 204, headers: cors.preflightHeaders(origin, path) }));
    }
    Object.assign(exchange.headers, cors.headersFor(origin, path));
    throw toNotFound(method, path);
  }
  const handleUnmatched = ({ request }: Matched) => answer(request, NO_ROUTE, answerUnmatched);
  api.all('/*', handleUnmatched, { detail: { hide: true } });
  return api.compile();
}
