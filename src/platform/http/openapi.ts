import { toOpenAPISchema } from '@elysiajs/openapi';
import { type TSchema, Type } from '@sinclair/typebox';
import type { AnyElysia, DocumentDecoration } from 'elysia';
import { CATALOGUE } from '../error-catalogue.ts';
import { documentationAnchor, type ErrorCode } from '../errors.ts';
import { ErrorBody } from './answers.ts';
import { type Examples, exampleOf } from './examples.ts';
import type { Route } from './route.ts';
import { registerFormats, Uuid } from './shapes.ts';

// The generator brings formats of zod's: its UUIDs are fewer than ours, and take fifty times as long to check.
registerFormats();

/** Codes that every route may answer with. */
const EVERYWHERE: ErrorCode[] = [
  'API_RATE_LIMIT',
  'API_REQUEST_TIMEOUT',
  'DATABASE_BUSY',
  'DATABASE_UNAVAILABLE',
  'ERROR',
  'SERVICE_STOPPING',
];
const WITH_TOKEN: ErrorCode[] = [
  'API_UNAUTHORIZED',
  'CLAIMS_ENTITLEMENT_EXPIRED',
  'CLAIMS_MISSING_ENTITLEMENT',
  'TOKEN_INVALID',
];

const COUNT = { type: 'integer', minimum: 0 };
/** Of every answer to a request that was counted; `Retry-After` of those that were one too many. */
const HEADERS = {
  'RateLimit-Limit': { description: 'How many requests there may be in a window.', schema: COUNT },
  'RateLimit-Remaining': { description: 'How many more there may be in this one.', schema: COUNT },
  'RateLimit-Reset': { description: 'In how many seconds it ends.', schema: COUNT },
  'Retry-After': { description: 'How many seconds to wait.', schema: COUNT },
};
const LIMIT_HEADERS = Object.fromEntries(
  Object.keys(HEADERS).map((name) => [name, { $ref: `#/components/headers/${name}` }]),
);

const RAY_ID = '01a1fd6d-75cb-736c-a6d1-baa2f5588951';

/**
 * The API document (OpenAPI 3.1). Elysia's generator makes it from the app; since requests are checked by our own
 * pipeline, the shapes reach it as references beside the routes.
 */
export function describeApi(app: AnyElysia, routes: Route[], version: string, examples: Examples) {
  const references: Record<string, Record<string, ReturnType<typeof shapesOf>>> = {};
  for (const route of routes) {
    const path = references[route.path] ?? {};
    references[route.path] = path;
    path[route.method.toLowerCase()] = shapesOf(route);
  }
  const { paths } = toOpenAPISchema(app, undefined, references);
  return {
    openapi: '3.1.0',
    info: {
      title: 'Muster',
      version,
      description: 'Hosts multiplayer games: lobbies, seats, game servers, builds. Errors are listed at /docs/errors.',
    },
    components: {
      schemas: { Error: ErrorBody },
      examples: errorExamples(),
      headers: HEADERS,
      securitySchemes: { token: { type: 'http', scheme: 'bearer' } },
    },
    paths: addExamples(dropOtherContent(paths) as Record<string, Record<string, Operation>>, routes, examples),
  };
}

/** What the document says of a route besides its shapes. */
export function describeRoute(route: Route): DocumentDecoration {
  return {
    summary: route.summary,
    operationId: `${route.method.toLowerCase()}${route.path.replace(/[^a-z0-9]+/gi, '_')}`,
    tags: [route.path.split('/')[1] ?? ''],
    description: [...describeKinds(route), describeLimit(route)].join(' '),
    ...(route.allow === 'anyone' ? {} : { security: [{ token: [] }] }),
  };
}

function describeKinds({ allow }: Route): string[] {
  return allow === 'anyone' ? [] : [`Takes a token of kind ${allow.join(' or ')}.`];
}

function describeLimit({ allow, limit }: Route): string {
  const { by, requests, window_ms } = limit;
  const is_shared = allow !== 'anyone' && allow.some((kind) => kind === 'public');
  const who = by === 'address' || allow === 'anyone' ? 'address' : is_shared ? 'namespace and address' : 'caller';
  return `${requests} requests in ${window_ms / 1_000} s for each ${who}, unless the host has other limits.`;
}

function shapesOf(route: Route) {
  const names = [...route.path.matchAll(/:([a-z_]+)/g)].map(([, name = '']) => name);
  const params = names.map((name) => [name, route.free_params.includes(name) ? Type.String() : Uuid]);
  return {
    params: Type.Object(Object.fromEntries(params)),
    query: route.query ?? Type.Object({}),
    headers: Type.Object({}),
    body: bodyOf(route),
    response: responsesOf(route),
  };
}

function bodyOf({ method, body, body_kind }: Route): TSchema {
  if (body_kind === 'stream') return Type.Any({ description: 'The bytes of the file.' });
  if (body_kind === 'text') return Type.Any({ description: 'Any JSON.' });
  return body ?? (method === 'GET' ? Type.Any() : Type.Object({}));
}

function responsesOf(route: Route): Record<number, TSchema> {
  const responses: Record<number, TSchema> = { 200: route.response ?? Type.Any({ description: 'Any JSON.' }) };
  for (const [status, listed] of errorsOf(route)) {
    responses[status] = Type.Ref('#/components/schemas/Error', { description: listed.join(', ') });
  }
  return responses;
}

/** The codes that a route may answer with, by status. */
function errorsOf(route: Route): Map<number, ErrorCode[]> {
  const codes: ErrorCode[] = [...EVERYWHERE, ...(route.allow === 'anyone' ? [] : WITH_TOKEN), ...route.errors];
  if (route.body || route.body_kind !== 'json') codes.push('API_BAD_BODY', 'API_BODY_TOO_LARGE');
  if (route.query) codes.push('API_BAD_QUERY_PARAMETER');
  if (route.limit.when_store_is_lost === 'refuse') codes.push('LIMITS_UNAVAILABLE');
  return Map.groupBy(new Set(codes.sort()), (code) => CATALOGUE[code].status);
}

/** The parts of an operation that examples stand in. */
interface Operation {
  parameters?: { name: string; example?: unknown }[];
  requestBody?: { content: Record<string, { example?: unknown }> };
  responses: Record<string, { headers?: object; content?: Record<string, { example?: unknown; examples?: unknown }> }>;
}

const JSON_TYPE = 'application/json';

/** Shows what is sent and answered, and each error that may be met. */
function addExamples(paths: Record<string, Record<string, Operation>>, routes: Route[], examples: Examples) {
  for (const route of routes) {
    const operation = paths[route.path.replace(/:([a-z_]+)/g, '{$1}')]?.[route.method.toLowerCase()];
    if (!operation) continue;
    const shapes = shapesOf(route);
    const parameters: Record<string, TSchema> = { ...shapes.params.properties, ...shapes.query.properties };
    for (const parameter of operation.parameters ?? []) {
      const shape = parameters[parameter.name];
      if (shape) parameter.example = exampleOf(shape, examples, { name: parameter.name });
    }
    const sent = operation.requestBody?.content[JSON_TYPE];
    if (sent) sent.example = exampleOf(shapes.body, examples, { is_sent: true });
    const answered = operation.responses['200']?.content?.[JSON_TYPE];
    if (answered && route.response) answered.example = exampleOf(route.response, examples);
    const too_many = operation.responses['429'];
    if (too_many) too_many.headers = LIMIT_HEADERS;
    for (const [status, codes] of errorsOf(route)) {
      const refused = operation.responses[status]?.content?.[JSON_TYPE];
      const references = codes.map((code) => [code, { $ref: `#/components/examples/${code}` }]);
      if (refused) refused.examples = Object.fromEntries(references);
    }
  }
  return paths;
}

/** Every error's body, by its code. What is filled in stands in braces. */
function errorExamples() {
  const entries = Object.entries(CATALOGUE).map(([code, { message }]) => {
    const documentation = `https://play.example.com/docs/errors#${documentationAnchor(code as ErrorCode)}`;
    return [code, { value: { code, message, ray_id: RAY_ID, documentation } }];
  });
  return Object.fromEntries(entries);
}

/** Bodies are JSON only; the generator also lists the forms that Elysia could parse. */
function dropOtherContent<Paths>(paths: Paths): Paths {
  return JSON.parse(JSON.stringify(paths), (name, value) =>
    name === 'application/x-www-form-urlencoded' || name === 'multipart/form-data' || name === '$id'
      ? undefined
      : value,
  );
}
