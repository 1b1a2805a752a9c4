import type { TSchema } from '@sinclair/typebox';
import { ServiceError } from '../errors.ts';
import { type Soon, whenThere } from '../soon.ts';
import type { Caller, CallerKind } from '../tokens/caller.ts';
import type { Tokens } from '../tokens/tokens.ts';
import { createSharedReads } from '../watch/shared-reads.ts';
import type { View } from '../watch/views.ts';
import type { Authorization, Watch } from '../watch/watch.ts';
import type { PeerServer } from './addresses.ts';
import { JsonText } from './answers.ts';
import { badBody, isKept, noteFullyRead, parseJsonToKeep, type ReadText } from './body.ts';
import { type Counting, limitOf, nameWatcher } from './counting.ts';
import { createQueryReader, rememberLast } from './query.ts';
import { type Call, isWatched, namesEnvironment, type Question, type Route, type WatchedRoute } from './route.ts';
import { type CompiledShape, compileShape, describeProblem, isUuid } from './shapes.ts';
import type { Patience } from './time-limits.ts';

const BEARER = 'Bearer ';

/** Who may act within the game, and the namespace or environment, that a path names. Throws when the caller may not. */
export interface Tenants {
  admit(caller: Caller, place: { game_id: string; namespace_id?: string }, access: 'read' | 'write'): Promise<void>;
  /** Throws TOKEN_REVOKED when the caller's token, good by itself, is refused by now. A promise only where that is looked up. */
  authenticate(caller: Caller): Soon<void>;
  /** The topics of news that may change either; none where nothing does. */
  newsOf(caller: Caller): Soon<readonly string[]>;
}

/** What comes from outside of the route table. */
export interface Incoming {
  request: Request;
  server: PeerServer | null;
  /** Null stands for a part of the path that cannot be decoded. */
  params: Record<string, string | null>;
  address: () => string;
  /** Headers of the answer, to which may be added. */
  headers: Record<string, string>;
  ray_id: string;
  onCaller(caller: Caller): void;
  patience: Patience;
}

/** Whose pages may do without a token (specification: tokenless authentication). */
export interface TokenlessOrigins {
  /** The namespace that an origin belongs to, if its pages need no token. */
  findByOrigin(origin: string): Promise<string | undefined>;
  /** The topics of news that may change that. */
  newsOf(origin: string, namespace_id: string): string[];
}

interface PipelineDependencies {
  tokens: Tokens;
  tenants: Tenants;
  origins: TokenlessOrigins;
  watch: Pick<Watch, 'answer' | 'readIndex'>;
  counting: Counting;
  readText: ReadText;
}

/** A question as it comes, from somebody who is known. */
export interface Asking {
  caller: Caller | undefined;
  params: Record<string, string | null>;
  search: URLSearchParams;
}

/** A question that may be asked. */
export interface Admitted {
  question: Question<unknown, never, never>;
  /** How to find out later whether it still may be. */
  admission: Authorization | undefined;
}

/**
 * Makes what admits questions to one route: is he of a kind that may ask; may he, here; what does the query say. A promise
 * only where that has to be waited for.
 */
export function createDoor(route: Route, tenants: Tenants) {
  const readQuery = route.query && createQueryReader(route.query);

  function ask(caller: Caller | undefined, params: Record<string, string>, search: URLSearchParams) {
    const given: { watch_index?: string } = readQuery?.(search) ?? {};
    // Where somebody stands does not change what there is to be seen.
    const { watch_index: _where, ...query } = given;
    return { caller, params, query } as Question<unknown, never, never>;
  }

  return ({ caller, search, ...asking }: Asking): Soon<Admitted> => {
    if (route.allow !== 'anyone') assertKind(caller, route.allow, route.path);
    const params = checkParams(asking.params, route.free_params);
    const { access } = route;
    if (!caller) return { question: ask(caller, params, search), admission: undefined };
    const admitNow = () =>
      whenThere(tenants.authenticate(caller), () =>
        access ? tenants.admit(caller, placeOf(params), access) : undefined,
      );
    const check = async () => {
      // News reaches what is remembered before this looks at it.
      await Promise.resolve();
      await admitNow();
    };
    return whenThere(admitNow(), () =>
      whenThere(tenants.newsOf(caller), (topics) => ({
        question: ask(caller, params, search),
        admission: topics.length === 0 ? undefined : { topics, check },
      })),
    );
  };
}

/**
 * Makes the function that answers one route's requests. The steps, in this order, for every route: who asks; not too often;
 * may he, here; what does the query say; what does the body say; the handler. Nothing is read before its reader is known.
 */
export function createPipeline(route: Route, dependencies: PipelineDependencies) {
  const { tokens, tenants, origins, watch, counting, readText } = dependencies;
  const admit = createDoor(route, tenants);
  const recognise = createRecognition(origins);
  const body_shape = route.body && compileShape(route.body);
  const readSearch = createSearchReader(route, watch);

  /** Who asks. A promise only where he has not asked lately. */
  function identify(incoming: Incoming): Soon<Identified> {
    const token = readBearer(incoming.request.headers);
    const known = token === undefined ? undefined : tokens.recall(token);
    return known ? { caller: known } : identifyNew(incoming, token);
  }

  async function identifyNew(incoming: Incoming, token: string | undefined): Promise<Identified> {
    const player = route.is_tokenless ? await recognise(incoming.request.headers) : undefined;
    if (player) return player;
    try {
      if (token === undefined) throw new ServiceError('API_UNAUTHORIZED', {});
      return { caller: await tokens.verify(token) };
    } catch (error) {
      await counting.countRefused(incoming);
      throw error;
    }
  }

  return async (incoming: Incoming): Promise<unknown> => {
    const { request, params, address, ray_id, patience } = incoming;
    const known = route.allow === 'anyone' ? undefined : identify(incoming);
    const identified = known instanceof Promise ? await known : known;
    const caller = identified?.caller;
    if (caller) incoming.onCaller(caller);
    const { search, number } = readSearch(request.url);
    if (route.address_limit) await counting.count(route.address_limit, caller, incoming);
    const counted = counting.count(limitOf(route, number !== undefined), caller, incoming);
    if (counted) await counted;
    const admitted = admit({ caller, params, search });
    const { question, admission = identified?.admission } = admitted instanceof Promise ? await admitted : admitted;
    if (isWatched(route)) {
      const waiting = {
        number,
        authorization: admission,
        signal: patience.signal,
        caller_key: nameWatcher(caller, address),
      };
      return new JsonText(await watch.answer(await lookAt(route, question), waiting));
    }
    const text = route.body_kind === 'text' || body_shape ? await readText(request) : '';
    const body = body_shape ? checkBody(text, body_shape) : {};
    const call: Call<unknown, unknown, unknown, unknown> = {
      ...question,
      body,
      text,
      get address() {
        return address();
      },
      ray_id,
      patience,
      request,
    };
    const answer = await route.handle(call as Call<unknown, never, never, never>);
    // A handler that takes a stream succeeds at its end only.
    if (route.body_kind === 'stream') noteFullyRead(request);
    return answer;
  };
}

/** What a route shows to a question. Another route may show the same thing in another way. */
export function lookAt(route: WatchedRoute, question: Admitted['question']): Soon<View> {
  const name = (sight: View): View => ({ ...sight, name: `${route.path} ${sight.name}` });
  const sight = route.look(question);
  return whenThere(sight, name);
}

/** Somebody who is known. */
interface Identified {
  caller: Caller;
  /** How to find out later whether he still is; undefined for the bearer of a token. */
  admission?: Authorization;
}

/** Makes what knows whoever comes without a token: from a page of a namespace's own he is a player of that namespace. */
export function createRecognition(origins: TokenlessOrigins) {
  // News of a namespace makes all of its pages' players doubtful together.
  const share = createSharedReads<string | undefined>();
  return async (headers: Headers): Promise<Required<Identified> | undefined> => {
    const origin = headers.get('origin');
    if (origin === null || headers.has('authorization')) return undefined;
    const namespace_id = await origins.findByOrigin(origin);
    if (namespace_id === undefined) return undefined;
    const check = async () => {
      const found = await share(origin, () => origins.findByOrigin(origin));
      if (found !== namespace_id) throw new ServiceError('API_UNAUTHORIZED', {});
    };
    const topics = origins.newsOf(origin, namespace_id);
    return { caller: { kind: 'public', namespace_id }, admission: { topics, check } };
  };
}

/** The token of the header "Authorization: Bearer TOKEN". */
export function readBearer(headers: Headers): string | undefined {
  const header = headers.get('authorization');
  return header?.startsWith(BEARER) ? header.slice(BEARER.length).trim() : undefined;
}

function assertKind(caller: Caller | undefined, allowed: readonly CallerKind[], path: string): void {
  if (!caller) throw new ServiceError('API_UNAUTHORIZED', {});
  if (!allowed.includes(caller.kind)) {
    // As Rivet: a service token is known on the paths of an environment, and not enough for all of them.
    if (caller.kind === 'service' && namesEnvironment(path)) {
      throw new ServiceError('API_FORBIDDEN', {
        reason: `it does not accept a service token; use one of: ${allowed.join(', ')}`,
      });
    }
    throw new ServiceError('CLAIMS_MISSING_ENTITLEMENT', { entitlements: allowed.join(', ') });
  }
}

/** An id in a path that is no UUID, or a part that cannot be decoded, means that there is nothing at this path. */
function checkParams(params: Record<string, string | null>, free: readonly string[]): Record<string, string> {
  const checked: Record<string, string> = {};
  for (const [name, value] of Object.entries(params)) {
    const is_free = free.includes(name);
    if (value === null || (is_free ? !isKept(value) : !isUuid(value))) throw new ServiceError('API_NOT_FOUND', {});
    checked[name] = is_free ? value : value.toLowerCase();
  }
  return checked;
}

function placeOf(params: Record<string, string>): { game_id: string; namespace_id?: string } {
  const { game_id = '', namespace_id, environment_id = namespace_id } = params;
  return environment_id === undefined ? { game_id } : { game_id, namespace_id: environment_id };
}

/** What an address says behind its path. */
interface Searched {
  search: URLSearchParams;
  /** Where somebody stands who watches. */
  number: number | undefined;
}

/** Makes what reads that. */
function createSearchReader(route: Route, watch: Pick<Watch, 'readIndex'>): (url: string) => Searched {
  const read = rememberLast((text: string) => {
    const search = new URLSearchParams(text);
    const number = isWatched(route) ? watch.readIndex(search.get('watch_index') ?? undefined) : undefined;
    return { search, number };
  });
  return (url) => {
    const start = url.indexOf('?');
    return read(start < 0 ? '' : url.slice(start));
  };
}

function checkBody(text: string, shape: CompiledShape<TSchema>): unknown {
  const body = parseJsonToKeep(text);
  if (shape.accepts(body)) return body;
  const problems = shape.problems(body);
  throw badBody(problems.slice(0, 1).map(describeProblem).join(), { errors: problems });
}
