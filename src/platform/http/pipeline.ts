import { ServiceError } from '../errors.ts';
import { type MaybePromise, whenKnown } from '../maybe-promise.ts';
import type { Tokens } from '../tokens/tokens.ts';
import type { View } from '../watch/views.ts';
import type { Watch } from '../watch/watch.ts';
import { jsonResponse, toResponse } from './answers.ts';
import { type Audit, createRecorder } from './audit.ts';
import { createAuthenticator, type OriginAuthenticator } from './authentication.ts';
import { createAuthorizer, type Tenants } from './authorization.ts';
import { createBodyParser, type ReadText } from './body.ts';
import { type AnyInput, Call } from './call.ts';
import type { Cors } from './cors.ts';
import type { Exchange } from './exchange.ts';
import type { RawParams } from './path.ts';
import { createSearchReader } from './query.ts';
import { callerKey, limitFor, type RateLimiter } from './rate-limits.ts';
import { isWatched, type Route, type WatchedRoute } from './route.ts';

export interface PipelineOptions {
  tokens: Tokens;
  tenants: Tenants;
  rate_limiter: RateLimiter;
  audit: Audit;
  watch: Pick<Watch, 'answer' | 'readIndex'>;
  /** Aborted when the service stops. */
  stopping: AbortSignal;
}

/** What the pipelines of all routes share. */
export interface PipelineParts {
  cors: Cors;
  authenticateByOrigin: OriginAuthenticator;
  readText: ReadText;
}

/** Answers a route's requests. */
export type Pipeline = (exchange: Exchange, raw_params: RawParams) => Promise<Response>;

/**
 * Compiles a route into the function that answers its requests. Every route has the same steps in the same order; what a
 * step needs to know of the route is found out here, once. A body is read only for a caller that may send it.
 */
export function createPipeline(route: Route, options: PipelineOptions, parts: PipelineParts): Pipeline {
  const { tokens, tenants, watch, rate_limiter, audit, stopping } = options;
  const { cors, authenticateByOrigin, readText } = parts;
  const { path, address_limit, body_kind, body_bytes_max } = route;
  const authenticate = createAuthenticator(route, { tokens, authenticateByOrigin, rate_limiter });
  const { authorize, authorizationOf } = createAuthorizer(route, tenants);
  const readSearch = createSearchReader(isWatched(route) ? watch.readIndex : () => undefined);
  const handle = isWatched(route) ? undefined : createRecorder(route, audit);
  const parseBody = route.body ? createBodyParser(route.body) : () => NO_BODY;
  const has_text = route.body !== undefined || body_kind === 'text';
  // A poll waits as long as the watch lets it, and an upload takes as long as it takes.
  const has_deadline = !isWatched(route) && body_kind !== 'stream';
  // A load balancer asks for the health of a service that stops.
  const answers_while_stopping = path.startsWith('/health/');

  return async (exchange, raw_params) => {
    const { request } = exchange;
    const { url, headers } = request;
    if (has_deadline) exchange.deadline.start();
    Object.assign(exchange.headers, cors.headersFor(headers.get('origin'), path));
    if (stopping.aborted && !answers_while_stopping) throw new ServiceError('SERVICE_STOPPING', {});

    const authenticated = await authenticate(exchange);
    const { caller } = authenticated;
    exchange.caller = caller;

    const { params: search, number } = readSearch(url);
    if (address_limit) await rate_limiter.count(address_limit, caller, exchange);
    await rate_limiter.count(limitFor(route, number !== undefined), caller, exchange);

    const input = await authorize({ caller, raw_params, search });
    if (isWatched(route)) {
      const { authorization = await authorizationOf(input) } = authenticated;
      const waiting = { signal: request.signal, caller_key: callerKey(caller, exchange), authorization };
      return jsonResponse(await watch.answer(await viewOf(route, input), { ...waiting, number }));
    }

    const text = has_text ? await readText(exchange, body_bytes_max) : '';
    const call = new Call(exchange, input, { text, body: parseBody(text) });
    const answer = await handle?.(call);
    // A handler that reads the body as a stream ends when it has read all of it.
    if (body_kind === 'stream') exchange.has_read_body = true;
    return toResponse(answer);
  };
}

const NO_BODY = {};

/** Returns the view of a route. Its name has the path, because another route may show the same state differently. */
export function viewOf(route: WatchedRoute, input: AnyInput): MaybePromise<View> {
  return whenKnown(route.toView(input), (view) => ({ ...view, name: `${route.path} ${view.name}` }));
}
