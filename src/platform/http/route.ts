import { type Static, type TObject, type TSchema, Type } from '@sinclair/typebox';
import type { ErrorCode } from '../errors.ts';
import { defaultLimit, type Limit } from '../limits/limit.ts';
import type { Soon } from '../soon.ts';
import type { CallerKind, CallerOf } from '../tokens/caller.ts';
import type { View } from '../watch/views.ts';
import { WatchIndex, WatchQuery } from './shapes.ts';
import type { Patience } from './time-limits.ts';

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** `{ game_id: string }` for '/games/:game_id'. */
export type PathParameters<Path extends string> = Path extends `${string}:${infer Name}/${infer Rest}`
  ? Record<Name, string> & PathParameters<`/${Rest}`>
  : Path extends `${string}:${infer Name}`
    ? Record<Name, string>
    : unknown;

/** What somebody asks to see. */
export interface Question<Caller, Parameters, Query> {
  /** Who asks; of one of the kinds that the route allows. Undefined where anyone may. */
  caller: Caller;
  /** From the path. UUIDs, lower case, unless the route says otherwise. */
  params: Parameters;
  query: Query;
}

/** What a handler is given: the request, parsed and admitted. */
export interface Call<Caller, Parameters, Query, Body> extends Question<Caller, Parameters, Query> {
  /** Of the route's shape; members that the shape does not name may be there and mean nothing. */
  body: Body;
  /** The body as it came, on routes that take text. */
  text: string;
  /** The client's address. */
  address: string;
  ray_id: string;
  /** How long its answer is waited for. */
  patience: Patience;
  /** The request itself, for bodies that are not JSON. */
  request: Request;
}

/** A handler's answer: a value sent as JSON, or a response as it is. */
type Answer<Shape extends TSchema> = Promise<Static<Shape> | Response>;

interface RouteOptions<Kinds extends CallerKind, Query extends TObject, Body extends TSchema, Shape extends TSchema> {
  /** What a generated client calls it: a verb and a noun, `findLobby`. By its method and path if it says nothing. */
  operation?: string;
  /** One sentence for the documentation. */
  summary: string;
  /** The kinds of token that are let in. A route that names none does not exist. */
  allow: readonly Kinds[] | 'anyone';
  /** Whether pages of a namespace's own may call it without a token, as its public callers. */
  is_tokenless?: boolean;
  /** What the route does with the game (and the namespace or environment) that its path names. Required if it names one. */
  access?: 'read' | 'write';
  /** How often one may call it; a generous limit by its method if it says nothing. */
  limit?: Limit;
  /** Counted besides: how often one may call it from one address, with whatever token. */
  address_limit?: Limit;
  query?: Query;
  body?: Body;
  /** `json` (at most 1 MiB, an empty one is `{}`), `text` (the same, unparsed) or `stream`: the handler reads it. */
  body_kind?: 'json' | 'text' | 'stream';
  /** Path parameters that are not UUIDs. */
  free_params?: readonly string[];
  response?: Shape;
  /** Codes a caller may meet here, besides those that every route has. */
  errors?: readonly ErrorCode[];
  /** Not in the API document: pages for people. */
  is_page?: boolean;
}

interface RouteLine {
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
  free_params: readonly string[];
  response: TSchema | undefined;
  errors: readonly ErrorCode[];
  is_page: boolean;
}

export type HandledRoute = RouteLine & { handle(call: Call<unknown, never, never, never>): Promise<unknown> };

/** One whose answer can be watched: it says what is to be seen. */
export type WatchedRoute = RouteLine & { look(question: Question<unknown, never, never>): Soon<View> };

/** A line of the route table. What stands in it is all there is to know of a route before its handler runs. */
export type Route = HandledRoute | WatchedRoute;

/**
 * Describes one route: `route('GET', '/games/:game_id', { allow: ['cloud'], … }, ({ params }) => …)`. The handler's
 * argument is typed by the description. Handlers only map: who asks and what he sent, one call of a use case, its answer.
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
  return { ...lineOf(method, path, options), handle: handle as HandledRoute['handle'] };
}

interface WatchedOptions<Kinds extends CallerKind, Query extends TObject, Shape extends TObject>
  extends Omit<RouteOptions<Kinds, Query, TSchema, Shape>, 'body' | 'body_kind' | 'is_page' | 'response'> {
  /** Without its `watch`. */
  response: Shape;
}

/**
 * Describes a GET whose answer can be watched: at once, by the long poll (`watch_index`) and over the WebSocket. `look`
 * says what there is to be seen, and throws when there is nothing; the answer has the shape, and `watch` besides.
 */
export function watched<
  const Path extends string,
  Kinds extends CallerKind,
  Shape extends TObject,
  Query extends TObject = TObject,
>(
  path: Path,
  options: WatchedOptions<Kinds, Query, Shape>,
  look: (question: Question<CallerOf<Kinds>, PathParameters<Path>, Static<Query>>) => Soon<View<Static<Shape>>>,
): WatchedRoute {
  const { query, response, errors = [], ...others } = options;
  const line = lineOf('GET', path, {
    ...others,
    query: Type.Object({ ...query?.properties, ...WatchQuery.properties }),
    response: Type.Object({ ...response.properties, watch: WatchIndex }),
    errors: [...errors, 'TOO_MANY_WATCHERS'],
  });
  return { ...line, look: look as WatchedRoute['look'] };
}

/** Whether a path is of the part of the API that service tokens are made for. */
export function namesEnvironment(path: string): boolean {
  return path.includes('/:environment_id');
}

export function isWatched(route: Route): route is WatchedRoute {
  return 'look' in route;
}

/** Reads the parts of a path: what stands where the pattern has a name; undefined when they do not fit. */
export type PathReader = (parts: readonly string[]) => Record<string, string> | undefined;

export function createPathReader(pattern: string): PathReader {
  const expected = pattern.split('/');
  return (parts) => {
    if (expected.length !== parts.length) return undefined;
    const params: Record<string, string> = {};
    for (const [index, part] of expected.entries()) {
      const text = parts[index] ?? '';
      if (part.startsWith(':')) params[part.slice(1)] = decode(text);
      else if (part !== text) return undefined;
    }
    return params;
  };
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function lineOf<Kinds extends CallerKind, Query extends TObject, Body extends TSchema, Shape extends TSchema>(
  method: Method,
  path: string,
  options: RouteOptions<Kinds, Query, Body, Shape>,
): RouteLine {
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
    free_params: options.free_params ?? [],
    response: options.response,
    errors: options.errors ?? [],
    is_page: options.is_page ?? false,
  };
}

/** `getThingsThingId` for GET /things/:thing_id. */
export function nameByPath(method: Method, path: string): string {
  const words = path.split(/[^a-z0-9]+/i).filter((word) => word !== '');
  return method.toLowerCase() + words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join('');
}
