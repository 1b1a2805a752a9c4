import { Elysia } from 'elysia';
import { assert, ServiceError } from '../errors.ts';
import type { Events } from '../events.ts';
import type { Limit } from '../limits/limit.ts';
import type { Soon } from '../soon.ts';
import type { Caller } from '../tokens/caller.ts';
import type { Tokens } from '../tokens/tokens.ts';
import type { Watch } from '../watch/watch.ts';
import type { Addresses, PeerServer } from './addresses.ts';
import { complete, completeText, errorResponse, JsonText, toCallersError } from './answers.ts';
import { createTextReader, hasBody, isBodyLeft } from './body.ts';
import { noteEnd, noteRequest } from './connections-in-use.ts';
import { createCors } from './cors.ts';
import type { Counting } from './counting.ts';
import { listenerOf } from './listeners.ts';
import { describeRoute } from './openapi.ts';
import { createPipeline, type Tenants, type TokenlessOrigins } from './pipeline.ts';
import type { Rays } from './rays.ts';
import { createPathReader, isWatched, type Method, type PathReader, type Route } from './route.ts';
import { TimeLimits, untilGone } from './time-limits.ts';

const WATCH_PATH = '/watch';
const FIRST_OF_HOST = 'https://'.length;
/** Of the time of a request: a body that takes longer to arrive is refused. */
const BODY_SHARE = 0.4;

export interface AppOptions {
  routes: Route[];
  tokens: Tokens;
  tenants: Tenants;
  watch: Pick<Watch, 'answer' | 'readIndex'>;
  addresses: Addresses;
  counting: Counting;
  sites: Sites;
  sockets: Upgrades;
  rays: Rays;
  events: Events;
  public_url: string;
  local_url: string;
  request_timeout_ms: number;
  /** Aborted when the service stops: whoever waits is answered at once. */
  stopping: AbortSignal;
}

/** The WebSocket channel. */
export interface Upgrades {
  /** Makes a WebSocket of a request. Throws what it is refused with; adds to the headers of that answer. */
  upgrade(request: Request, server: UpgradingServer, headers: Record<string, string>): Promise<void>;
}

/** What Bun's server can do for WebSockets. */
export interface UpgradingServer extends PeerServer {
  // biome-ignore lint/suspicious/noExplicitAny: what a socket holds is the business of its makers.
  upgrade(request: Request, options: { data: any; headers?: Record<string, string> }): boolean;
  publish(topic: string, text: string): number;
}

/** A request to a site. */
export interface Visit {
  request: Request;
  /** The client's. */
  address(): string;
  /** Counts it for a namespace and the address. Throws API_RATE_LIMIT, and LIMITS_UNAVAILABLE where the limit says so. */
  count(limit: Limit, namespace_id: string): Soon<void>;
}

/** Static sites, which have host names of their own. */
export interface Sites extends TokenlessOrigins {
  /** The answer of the site whose host a request names; undefined when it is not a site that is asked. */
  respond(visit: Visit): Promise<Response | undefined>;
}

/** The parts of Elysia's context that a route uses. */
interface Routed {
  request: Request;
  params: Record<string, string | null> | undefined;
}

/** What an answer is made with. */
interface Answering {
  ray_id: string;
  path: string;
  /** May be added to. */
  headers: Record<string, string>;
  /** Notes the caller, once it is known. */
  onCaller(caller: Caller): void;
}

/** The HTTP face of the service: the route table, on Elysia. Does not listen yet. */
export function createApp(options: AppOptions) {
  const { routes, events, addresses, counting, sites, sockets, rays, public_url, local_url } = options;
  const { request_timeout_ms, stopping } = options;
  assertDenyByDefault(routes);
  assertNamedOnce(routes);
  const cors = createCors([public_url, local_url]);
  // As addresses of requests begin: whatever stands before us speaks HTTP to us.
  const own_beginnings = [...new Set([public_url, local_url].map((url) => `http://${new URL(url).host}/`))];
  const time_limits = new TimeLimits(request_timeout_ms, stopping);
  const readText = createTextReader(Math.ceil(request_timeout_ms * BODY_SHARE));

  /** Whether an address is the service's own, and not a site's, for one. */
  const isOwn = (url: string) => own_beginnings.some((beginning) => url.startsWith(beginning));

  /** Without a usable Host header there is no whole address, and Elysia would look for the path in the wrong place. */
  function readPath(request: Request): string {
    const { url } = request;
    const start = url.indexOf('/', FIRST_OF_HOST);
    if (hasSeveralHosts(request) || (!isOwn(url) && !(url.startsWith('http') && URL.canParse(url)))) {
      throw new ServiceError('API_BAD_HOST', {});
    }
    const path = url.slice(start);
    const end = path.search(/[?#]/);
    return end < 0 ? path : path.slice(0, end);
  }

  // A host may have one letter; Elysia looks for the path behind four, unless told otherwise.
  const app = new Elysia({ strictPath: true, handler: { standardHostname: false } });

  /** Runs what answers a request, and turns what it gives or throws into a response. */
  async function serve(request: Request, name: string, work: (answering: Answering) => Promise<unknown>) {
    const ray_id = Bun.randomUUIDv7();
    const started = performance.now();
    // A refusal depends on the origin too: no cache may give it to another one.
    let headers: Record<string, string> = { vary: 'Origin' };
    let caller: Caller | undefined;
    const onCaller = (known: Caller) => {
      caller = known;
    };
    let response: Response | JsonText;
    noteRequest(request, listenerOf(request, app.server));
    try {
      const path = readPath(request);
      headers = cors.headersFor(request, path);
      const answer = await work({ ray_id, path, headers, onCaller });
      const is_ready = answer instanceof Response || answer instanceof JsonText;
      response = is_ready ? answer : new JsonText(JSON.stringify(answer));
    } catch (failure) {
      const error = toCallersError(failure);
      // A body that its client cut is not a fault of the service, and nobody reads the answer.
      const is_cut = request.signal.aborted && failure instanceof DOMException && failure.name === 'AbortError';
      if (!is_cut && (error.code === 'ERROR' || (error.status >= 500 && error.cause !== undefined))) {
        events.emit({ event: 'request_failed', ray_id, method: request.method, route: name, cause: error.cause });
      }
      response = errorResponse(error, ray_id, public_url);
    } finally {
      noteEnd(request);
    }
    const duration_ms = Math.round(performance.now() - started);
    const { method } = request;
    rays.note({ ray_id, method, route: name, finished_at: Date.now(), duration_ms, caller });
    const status = response instanceof Response ? response.status : 200;
    if (method === 'HEAD') headers.date = new Date().toUTCString();
    if (hasBody(request) && (await isBodyLeft(request))) headers.connection = 'close';
    events.emit({ event: 'request_served', ray_id, method, route: name, status, duration_ms });
    return response instanceof Response ? complete(response, ray_id, headers) : completeText(response, ray_id, headers);
  }

  function visitOf(request: Request): Visit {
    const server: PeerServer | null = listenerOf(request, app.server);
    const address = () => addresses.of(request, server);
    return {
      request,
      address,
      count: (limit, namespace_id) =>
        counting.count(limit, { kind: 'public', namespace_id }, { request, server, address, headers: {} }),
    };
  }

  /** The answer of a site, as it is: what is in its headers is its own business. */
  async function serveSite(request: Request): Promise<Response | undefined> {
    const ray_id = Bun.randomUUIDv7();
    const response = await sites.respond(visitOf(request)).catch((failure: unknown) => {
      const error = toCallersError(failure);
      if (error.cause !== undefined) {
        events.emit({ event: 'request_failed', ray_id, method: request.method, route: 'site', cause: error.cause });
      }
      return errorResponse(error, ray_id, public_url);
    });
    if (response && hasBody(request) && (await isBodyLeft(request))) response.headers.set('connection', 'close');
    if (response && request.method === 'HEAD') response.headers.set('date', new Date().toUTCString());
    return response;
  }

  const isElsewhere = (request: Request) =>
    !isOwn(request.url) && URL.canParse(request.url) && !hasSeveralHosts(request);
  // Elysia reads this function's text too. What it gives is the answer; undefined goes on to the routes.
  app.onRequest(({ request }) => (isElsewhere(request) ? serveSite(request) : undefined));

  for (const route of routes) {
    const answer = createPipeline(route, { ...options, origins: sites, readText });
    const is_of_health = route.path.startsWith('/health/');
    const respond = (request: Request, params: Routed['params']) =>
      serve(request, route.path, ({ ray_id, headers, onCaller }) => {
        // Whether it lives is another question than whether it takes work.
        if (stopping.aborted && !is_of_health) throw new ServiceError('SERVICE_STOPPING', {});
        const server: PeerServer | null = listenerOf(request, app.server);
        let known: string | undefined;
        const address = () => {
          known ??= addresses.of(request, server);
          return known;
        };
        const incoming = { request, server, params: params ?? {}, address, headers, ray_id, onCaller };
        // What is watched has a time of its own, and is told when the service stops.
        if (isWatched(route)) return answer({ ...incoming, patience: untilGone(request) });
        // Uploads take as long as they take.
        if (route.body_kind === 'stream') return answer({ ...incoming, patience: time_limits.none(request) });
        return time_limits.run(request, (patience) => answer({ ...incoming, patience }));
      });
    // Elysia reads this function's text to see what it needs: it must take these two by name, and nothing else. The server
    // would be put into each request's context by a property that is defined anew.
    const handle = ({ request, params }: Routed) => respond(request, params);
    const detail = route.is_page ? { hide: true } : describeRoute(route);
    app.route(route.method, route.path, handle, { detail });
    // Bun sends the headers of the GET and cancels its body. Elysia would read the body to its end to know its length.
    if (route.method === 'GET') app.route('HEAD', route.path, handle, { detail: { hide: true } });
  }

  const upgrade = (request: Request, server: UpgradingServer | null) =>
    serve(request, WATCH_PATH, async ({ headers }) => {
      if (!server) throw new ServiceError('SERVICE_STOPPING', {});
      await sockets.upgrade(request, server, headers);
      // It is no request any more: nobody gets this.
      return new Response();
    });
  app.get(WATCH_PATH, ({ request }) => upgrade(request, listenerOf(request, app.server)), { detail: { hide: true } });

  const watching = { method: 'GET', path: WATCH_PATH } as const;
  const doors = [...routes, watching].map(({ method, path }): Door => ({ method, readPath: createPathReader(path) }));
  const elsewhere = ({ request }: { request: Request }) =>
    serve(request, '-', async ({ path }) => {
      if (request.method === 'OPTIONS')
        return new Response(null, { status: 204, headers: cors.preflightHeaders(request, path) });
      throw notFound(doors, request.method, path);
    });
  app.all('/*', elsewhere, { detail: { hide: true } });
  return app;
}

export type App = ReturnType<typeof createApp>;

/** The service does not start with a route that forgets to say who may call it. */
function assertDenyByDefault(routes: Route[]): void {
  for (const { method, path, allow, access } of routes) {
    assert(allow === 'anyone' || allow.length > 0, `${method} ${path} names the kinds of token it takes`);
    const names_tenant = path.includes(':game_id');
    assert(!names_tenant || access !== undefined, `${method} ${path} says what it does with the game it names`);
    assert(names_tenant || access === undefined, `${method} ${path} names the game it has access to`);
  }
}

/** Generated clients have one method for each name. */
function assertNamedOnce(routes: Route[]): void {
  const names = new Map<string, string>();
  for (const { operation, method, path } of routes) {
    const other = names.get(operation);
    assert(other === undefined, `${method} ${path} has a name of its own: ${other} is called "${operation}" too`);
    names.set(operation, `${method} ${path}`);
  }
}

/** Whether a request has more than one Host header: a proxy may have read another one than this service does. */
function hasSeveralHosts({ headers }: Request): boolean {
  return headers.get('host')?.includes(',') ?? false;
}

/** What may be called at the paths of a pattern. */
interface Door {
  method: Method;
  readPath: PathReader;
}

/** Nothing at this path, or not for this method. */
function notFound(doors: Door[], method: string, path: string): ServiceError {
  const parts = path.split('/');
  const allowed = doors.filter(({ readPath }) => readPath(parts)).map((door) => door.method);
  // One that is allowed got here because the path was not written as it is meant: with a fragment, for one.
  if (allowed.length === 0 || allowed.some((one) => one === method)) return new ServiceError('API_NOT_FOUND', {});
  return new ServiceError('API_METHOD_NOT_ALLOWED', { method, allowed_methods: [...new Set(allowed)].join(', ') });
}
