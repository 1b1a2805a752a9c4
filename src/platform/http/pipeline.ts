import type { TObject, TSchema } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { ServiceError } from '../errors.ts';
import type { Caller, CallerKind } from '../tokens/caller.ts';
import { isOfKind, type Tokens } from '../tokens/tokens.ts';
import { badBody, isKept, parseJsonToKeep, readText } from './body.ts';
import type { Call, Route } from './route.ts';
import { type CompiledShape, compileShape, describeProblem, isUuid } from './shapes.ts';

const BEARER = 'Bearer ';
const WHOLE_NUMBER = /^-?\d+$/;

/** Who may act within the game, and the namespace or environment, that a path names. Throws when the caller may not. */
export interface Tenants {
  admit(caller: Caller, place: { game_id: string; namespace_id?: string }, access: 'read' | 'write'): Promise<void>;
}

/** What comes from outside of the route table. */
export interface Incoming {
  request: Request;
  params: Record<string, string>;
  address: string;
  ray_id: string;
  signal: AbortSignal;
}

/** Whose pages may do without a token (specification: tokenless authentication). */
export interface TokenlessOrigins {
  /** The namespace that an origin belongs to, if its pages need no token. */
  findByOrigin(origin: string): Promise<string | undefined>;
}

interface PipelineDependencies {
  tokens: Tokens;
  tenants: Tenants;
  origins: TokenlessOrigins;
}

/**
 * Makes the function that answers one route's requests. The steps, in this order, for every route: who asks; may he, here;
 * what does the query say; what does the body say; the handler. Nothing is read before its reader is known.
 */
export function createPipeline(route: Route, { tokens, tenants, origins }: PipelineDependencies) {
  const query_shape = route.query && compileShape(route.query);
  const body_shape = route.body && compileShape(route.body);

  return async (incoming: Incoming): Promise<unknown> => {
    const { request, address, ray_id, signal } = incoming;
    const caller =
      route.allow === 'anyone'
        ? undefined
        : ((route.is_tokenless ? await recognise(request, origins) : undefined) ??
          (await authenticate(request, tokens, route.allow)));
    const params = checkParams(incoming.params, route.free_params);
    if (caller && route.access) await tenants.admit(caller, placeOf(params), route.access);
    const query = query_shape && route.query ? readQuery(request, route.query, query_shape) : {};
    const text = route.body_kind === 'text' || body_shape ? await readText(request) : '';
    const body = body_shape ? checkBody(text, body_shape) : {};
    const call: Call<unknown, unknown, unknown, unknown> = {
      caller,
      params,
      query,
      body,
      text,
      address,
      ray_id,
      signal,
      request,
    };
    return await route.handle(call as Call<unknown, never, never, never>);
  };
}

/** Whoever comes without a token from a page of a namespace's own is a player of that namespace. */
async function recognise(request: Request, origins: TokenlessOrigins): Promise<Caller | undefined> {
  const origin = request.headers.get('origin');
  if (origin === null || request.headers.has('authorization')) return undefined;
  const namespace_id = await origins.findByOrigin(origin);
  return namespace_id === undefined ? undefined : { kind: 'public', namespace_id };
}

async function authenticate(request: Request, tokens: Tokens, allowed: readonly CallerKind[]): Promise<Caller> {
  const header = request.headers.get('authorization');
  if (!header?.startsWith(BEARER)) throw new ServiceError('API_UNAUTHORIZED', {});
  const caller = await tokens.verify(header.slice(BEARER.length).trim());
  if (!isOfKind(caller, allowed)) {
    throw new ServiceError('CLAIMS_MISSING_ENTITLEMENT', { entitlements: allowed.join(', ') });
  }
  return caller;
}

/** An id in a path that is no UUID means that there is nothing at this path. */
function checkParams(params: Record<string, string>, free: readonly string[]): Record<string, string> {
  const checked: Record<string, string> = {};
  for (const [name, value] of Object.entries(params)) {
    const is_free = free.includes(name);
    if (is_free ? !isKept(value) : !isUuid(value)) throw new ServiceError('API_NOT_FOUND', {});
    checked[name] = is_free ? value : value.toLowerCase();
  }
  return checked;
}

function placeOf(params: Record<string, string>): { game_id: string; namespace_id?: string } {
  const { game_id = '', namespace_id, environment_id = namespace_id } = params;
  return environment_id === undefined ? { game_id } : { game_id, namespace_id: environment_id };
}

function readQuery(request: Request, shape: TObject, compiled: CompiledShape<TObject>): unknown {
  const given = Object.fromEntries(new URL(request.url).searchParams);
  for (const [name, text] of Object.entries(given)) {
    // Value.Convert would cut 1.9 to 1, and take "true" for 1.
    const is_fraction = shape.properties[name]?.type === 'integer' && !WHOLE_NUMBER.test(text);
    const error = is_fraction ? 'expected a whole number' : 'expected a text without the character zero';
    if (is_fraction || !isKept(text)) throw new ServiceError('API_BAD_QUERY_PARAMETER', { parameter: name, error });
  }
  const query = Value.Convert(shape, given);
  if (compiled.accepts(query)) return query;
  const [problem] = compiled.problems(query);
  throw new ServiceError('API_BAD_QUERY_PARAMETER', {
    parameter: problem?.path[0] ?? '',
    error: problem?.message ?? 'unreadable',
  });
}

function checkBody(text: string, shape: CompiledShape<TSchema>): unknown {
  const body = parseJsonToKeep(text);
  if (shape.accepts(body)) return body;
  const problems = shape.problems(body);
  throw badBody(problems.slice(0, 1).map(describeProblem).join(), { errors: problems });
}
