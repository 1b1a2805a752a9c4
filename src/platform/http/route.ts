import { type Static, type TObject, type TSchema, Type } from '@sinclair/typebox';
import type { ErrorCode } from '../errors.ts';
import { defaultLimit, type Limit } from '../limits/limit.ts';
import type { MaybePromise } from '../maybe-promise.ts';
import type { CallerKind, CallerOf } from '../tokens/caller.ts';
import type { View } from '../watch/views.ts';
import { BODY_BYTES_MAX } from './body.ts';
import type { AnyCall, AnyInput, Call, RouteInput } from './call.ts';
import { WatchIndex, WatchQuery } from './shapes.ts';

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** `{ game_id: string }` for '/games/:game_id'. */
export type PathParameters<Path extends string> = Path extends `${string}:${infer Name}/${infer Rest}`
  ? Record<Name, string> & PathParameters<`/${Rest}`>
  : Path extends `${string}:${infer Name}`
    ? Record<Name, string>
    : unknown;

/** A handler's answer: a value to send as JSON, or a response. */
type Answer<Shape extends TSchema> = Promise<Static<Shape> | Response>;

interface RouteOptions<Kinds extends CallerKind, Query extends TObject, Body extends TSchema, Shape extends TSchema> {
  /** Its name in generated clients: a verb and a noun, `findLobby`. By default made from method and path. */
  operation?: string;
  /** One sentence for the documentation. */
  summary: string;
  /** The kinds of token that may call it. There is no default. */
  allow: readonly Kinds[] | 'anyone';
  /** Whether pages on a namespace's own domains may call it without a token, as its public callers. */
  is_tokenless?: boolean;
  /** How it uses the game (and the namespace or environment) that its path names. Required if it names one. */
  access?: 'read' | 'write';
  /** How often a caller may call it. By default a generous limit that depends on the method. */
  limit?: Limit;
  /** How often all callers at one address may call it together; counted besides `limit`. */
  address_limit?: Limit;
  query?: Query;
  body?: Body;
  /** `json`: an empty one is `{}`. `text`: unparsed. `stream`: the handler reads it. */
  body_kind?: 'json' | 'text' | 'stream';
  /** The most bytes of a body that is not a stream. By default 1 MiB. */
  body_bytes_max?: number;
  /** Path parameters that are not UUIDs. */
  free_params?: readonly string[];
  response?: Shape;
  /** Error codes of this route, besides those of every route. */
  errors?: readonly ErrorCode[];
  /** A page for people, which the API document leaves out. */
  is_page?: boolean;
  /**
   * Whether it may change something, so that the audit log records who called it. By default every method but GET does,
   * unless its access to the game is `read`.
   */
  is_change?: boolean;
  /**
   * Names of parameters and members of body and answer that the audit log records, besides ids (`…_id`). Never of
   * anything secret.
   */
  recorded?: readonly string[];
}

interface RouteEntry {
  /** Unique among all routes. */
  operation: string;
  summary: string;
  method: Method;
  path: string;
  allow: readonly CallerKind[] | 'anyone';
  is_tokenless: boolean;
  access: 'read' | 'write' | undefined;
  limit: Limit;
  address_limit: Limit | undefined;
  query: TObject | undefined;
  body: TSchema | undefined;
  body_kind: 'json' | 'text' | 'stream';
  body_bytes_max: number;
  free_params: readonly string[];
  response: TSchema | undefined;
  errors: readonly ErrorCode[];
  is_page: boolean;
  is_change: boolean;
  recorded: readonly string[];
}

export type HandledRoute = RouteEntry & { handle(call: AnyCall): Promise<unknown> };

/** A route whose answer can be watched: the content of a view. */
export type WatchedRoute = RouteEntry & { toView(input: AnyInput): MaybePromise<View> };

/** An entry of the route table: everything that is known of a route before its handler runs. */
export type Route = HandledRoute | WatchedRoute;

/**
 * Describes one route: `route('GET', '/games/:game_id', { allow: ['cloud'], … }, ({ params }) => …)`. The handler's
 * argument is typed by the description. A handler only maps: the request, one call of a use case, and its answer.
 */
export function route<
  const Path extends string,
  Kinds extends CallerKind,
  Query extends TObject = TObject,
  Body extends TSchema = TSchema,
  Shape extends TSchema = TSchema,
>(
  method: Method,
  path: Path,
  options: RouteOptions<Kinds, Query, Body, Shape>,
  handle: (call: Call<CallerOf<Kinds>, PathParameters<Path>, Static<Query>, Static<Body>>) => Answer<Shape>,
): HandledRoute {
  return { ...entryOf(method, path, options), handle: handle as HandledRoute['handle'] };
}

interface WatchedOptions<Kinds extends CallerKind, Query extends TObject, Shape extends TObject>
  extends Omit<
    RouteOptions<Kinds, Query, TSchema, Shape>,
    'body' | 'body_kind' | 'body_bytes_max' | 'is_page' | 'response' | 'is_change' | 'recorded'
  > {
  /** The shape of the answer without its `watch`. */
  response: Shape;
}

/**
 * Describes a GET whose answer can be read at once, by long polls (`watch_index`) and over the WebSocket. `toView` returns
 * the view, or throws if there is none. The answer has the shape of `response` and a `watch`.
 */
export function watched<
  const Path extends string,
  Kinds extends CallerKind,
  Shape extends TObject,
  Query extends TObject = TObject,
>(
  path: Path,
  options: WatchedOptions<Kinds, Query, Shape>,
  toView: (
    input: RouteInput<CallerOf<Kinds>, PathParameters<Path>, Static<Query>>,
  ) => MaybePromise<View<Static<Shape>>>,
): WatchedRoute {
  const { query, response, errors = [], ...others } = options;
  const entry = entryOf('GET', path, {
    ...others,
    query: Type.Object({ ...query?.properties, ...WatchQuery.properties }),
    response: Type.Object({ ...response.properties, watch: WatchIndex }),
    errors: [...errors, 'TOO_MANY_WATCHERS'],
  });
  return { ...entry, toView: toView as WatchedRoute['toView'] };
}

/** Returns whether a path belongs to the part of the API for service tokens. */
export function namesEnvironment(path: string): boolean {
  return path.includes('/:environment_id');
}

export function isWatched(route: Route): route is WatchedRoute {
  return 'toView' in route;
}

function entryOf<Kinds extends CallerKind, Query extends TObject, Body extends TSchema, Shape extends TSchema>(
  method: Method,
  path: string,
  options: RouteOptions<Kinds, Query, Body, Shape>,
): RouteEntry {
  return {
    method,
    path,
    operation: options.operation ?? nameByPath(method, path),
    summary: options.summary,
    allow: options.allow,
    is_tokenless: options.is_tokenless ?? false,
    access: options.access,
    limit: options.limit ?? defaultLimit(method, path),
    address_limit: options.address_limit,
    query: options.query,
    body: options.body,
    body_kind: options.body_kind ?? 'json',
    body_bytes_max: options.body_bytes_max ?? BODY_BYTES_MAX,
    free_params: options.free_params ?? [],
    response: options.response,
    errors: options.errors ?? [],
    is_page: options.is_page ?? false,
    is_change: options.is_change ?? (method !== 'GET' && options.access !== 'read'),
    recorded: options.recorded ?? [],
  };
}

/** Returns `getThingsThingId` for GET /things/:thing_id. */
export function nameByPath(method: Method, path: string): string {
  const words = path.split(/[^a-z0-9]+/i).filter((word) => word !== '');
  return method.toLowerCase() + words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join('');
}
