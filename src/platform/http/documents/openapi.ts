import { toOpenAPISchema } from '@elysiajs/openapi';
import { type TSchema, Type } from '@sinclair/typebox';
import type { AnyElysia, DocumentDecoration } from 'elysia';
import { CATALOGUE, type CatalogueEntry } from '../../error-catalogue.ts';
import { documentationAnchor, type ErrorCode } from '../../errors.ts';
import { ErrorBody } from '../answers.ts';
import { isRecorded } from '../audit.ts';
import { paramNamesOf } from '../path.ts';
import { namesEnvironment, type Route } from '../route.ts';
import { registerFormats, Uuid } from '../shapes.ts';
import { type Examples, exampleOf } from './examples.ts';
import { NamedShapes, type Part, writePlainly } from './shared-parts.ts';

// The generator registers zod's formats, whose UUIDs are fewer and take fifty times as long to check.
registerFormats();

/** Error codes of every route. */
const EVERYWHERE: ErrorCode[] = [
  'API_RATE_LIMIT',
  'API_REQUEST_TIMEOUT',
  'DATABASE_BUSY',
  'DATABASE_UNAVAILABLE',
  'STORAGE_FULL',
  'ERROR',
  'SERVICE_STOPPING',
];
const WITH_TOKEN: ErrorCode[] = [
  'API_UNAUTHORIZED',
  'CLAIMS_ENTITLEMENT_EXPIRED',
  'CLAIMS_MISSING_ENTITLEMENT',
  'TOKEN_REVOKED',
  'TOKEN_INVALID',
];

const COUNT = { type: 'integer', minimum: 0 };
/** Headers of answers to counted requests. `Retry-After` is for those over the limit. */
const HEADERS = {
  'RateLimit-Limit': { description: 'Requests allowed in a window.', schema: COUNT },
  'RateLimit-Remaining': { description: 'Requests left in the current window.', schema: COUNT },
  'RateLimit-Reset': { description: 'Seconds until the current window ends.', schema: COUNT },
  'Retry-After': { description: 'Seconds to wait before the next request.', schema: COUNT },
};
const LIMIT_HEADERS = Object.fromEntries(
  Object.keys(HEADERS).map((name) => [name, { $ref: `#/components/headers/${name}` }]),
);

const RAY_ID = '01a1fd6d-75cb-736c-a6d1-baa2f5588951';

/**
 * Returns the API document (OpenAPI 3.1). Elysia's generator makes it from the app. Elysia does not know the shapes, because
 * the pipeline checks requests, so the generator gets them as references beside the routes.
 */
export function describeApi(app: AnyElysia, routes: Route[], version: string, examples: Examples) {
  const references: Record<string, Record<string, ReturnType<typeof shapesOf>>> = {};
  for (const route of routes) {
    const path = references[route.path] ?? {};
    references[route.path] = path;
    path[route.method.toLowerCase()] = writePlainly(shapesOf(route));
  }
  const { paths } = toOpenAPISchema(app, undefined, references);
  const operations = dropOtherContent(paths) as Record<string, Record<string, Operation>>;
  const shapes = new NamedShapes();
  addExamples(operations, routes, examples, shapes);
  return {
    openapi: '3.1.0',
    info: {
      title: 'Muster',
      version,
      description:
        'Hosts multiplayer games: lobbies, seats, game servers, builds. Errors are listed at /docs/errors. An optional member of a body that is null counts as left out.',
    },
    components: {
      schemas: { Error: ErrorBody, ...shapes.schemas },
      responses: sharedResponses(),
      examples: errorExamples(),
      headers: HEADERS,
      securitySchemes: { token: { type: 'http', scheme: 'bearer' } },
    },
    paths: operations,
  };
}

/** Returns the description of a route in the document, without its shapes. */
export function describeRoute(route: Route): DocumentDecoration {
  return {
    summary: route.summary,
    operationId: route.operation,
    tags: [route.path.split('/')[1] ?? ''],
    description: [...describeKinds(route), describeLimit(route)].join(' '),
    ...(route.allow === 'anyone' ? {} : { security: [{ token: [] }], 'x-token-kinds': [...route.allow] }),
    ...(route.is_tokenless ? { 'x-tokenless': true } : {}),
    ...(isRecorded(route) ? { 'x-audited': true } : {}),
  };
}

function describeKinds({ allow }: Route): string[] {
  return allow === 'anyone' ? [] : [`Takes a token of kind ${allow.join(' or ')}.`];
}

function describeLimit({ allow, limit, address_limit }: Route): string {
  const { by, requests, window_ms } = limit;
  const is_shared = allow !== 'anyone' && allow.some((kind) => kind === 'public');
  const who = by === 'address' || allow === 'anyone' ? 'address' : is_shared ? 'namespace and address' : 'caller';
  const by_address = address_limit
    ? ` and ${address_limit.requests} in ${address_limit.window_ms / 1_000} s from each address`
    : '';
  return `${requests} requests in ${window_ms / 1_000} s for each ${who}${by_address}, unless the operator has set other limits.`;
}

function shapesOf(route: Route) {
  const params = paramNamesOf(route.path).map((name) => [
    name,
    route.free_params.includes(name) ? Type.String() : Uuid,
  ]);
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

/** Returns the error codes of a route, by status. */
function errorsOf(route: Route): Map<CatalogueEntry['status'], ErrorCode[]> {
  const codes: ErrorCode[] = [...EVERYWHERE, ...(route.allow === 'anyone' ? [] : WITH_TOKEN), ...route.errors];
  if (route.allow !== 'anyone' && !route.allow.includes('service') && namesEnvironment(route.path)) {
    codes.push('API_FORBIDDEN');
  }
  if (route.body || route.body_kind !== 'json') codes.push('API_BAD_BODY', 'API_BODY_TIMEOUT', 'API_BODY_TOO_LARGE');
  if (route.query) codes.push('API_BAD_QUERY_PARAMETER');
  if (route.limit.when_store_is_lost === 'refuse') codes.push('LIMITS_UNAVAILABLE');
  return Map.groupBy(new Set(codes.sort()), (code) => CATALOGUE[code].status);
}

interface Content {
  schema: Part;
  example?: unknown;
}

/** The parts of an operation that have examples. */
interface Operation {
  parameters?: { name: string; schema?: Part; example?: unknown }[];
  requestBody?: { content: Record<string, Content> };
  responses: Record<string, { $ref: string; description: string } | { content?: Record<string, Content> }>;
}

const JSON_TYPE = 'application/json';

/** Adds examples of the request, the answer and each error, and moves their shapes to those that have names. */
function addExamples(
  paths: Record<string, Record<string, Operation>>,
  routes: Route[],
  examples: Examples,
  named: NamedShapes,
): void {
  for (const route of routes) {
    const operation = paths[route.path.replace(/:([a-z_]+)/g, '{$1}')]?.[route.method.toLowerCase()];
    if (!operation) continue;
    const shapes = shapesOf(route);
    const parameters: Record<string, TSchema> = { ...shapes.params.properties, ...shapes.query.properties };
    for (const parameter of operation.parameters ?? []) {
      const shape = parameters[parameter.name];
      if (shape) parameter.example = exampleOf(shape, examples, { name: parameter.name });
      if (parameter.schema) parameter.schema = named.moveTitled(parameter.schema);
    }
    const sent = operation.requestBody?.content[JSON_TYPE];
    // Both addresses of the matchmaker have equal shapes.
    const name = route.operation.charAt(0).toUpperCase() + route.operation.slice(1).replace(/V1$/, '');
    if (sent) {
      sent.example = exampleOf(shapes.body, examples, { is_sent: true });
      sent.schema = named.move(sent.schema, `${name}Request`);
    }
    const ok = operation.responses['200'];
    const answered = ok && 'content' in ok ? ok.content?.[JSON_TYPE] : undefined;
    if (answered && route.response) answered.example = exampleOf(route.response, examples);
    if (answered) answered.schema = named.move(answered.schema, `${name}Response`);
    for (const [status, codes] of errorsOf(route)) {
      const $ref = `#/components/responses/${RESPONSE_NAMES[status]}`;
      operation.responses[status] = { $ref, description: codes.join(', ') };
    }
  }
}

/** Names of error responses, by status. */
const RESPONSE_NAMES: Record<CatalogueEntry['status'], string> = {
  400: 'BadRequest',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'NotFound',
  413: 'ContentTooLarge',
  426: 'UpgradeRequired',
  429: 'TooManyRequests',
  500: 'InternalServerError',
  503: 'ServiceUnavailable',
};

/** Returns one response for each error status, with all codes that have it. */
function sharedResponses() {
  const codes_of = Map.groupBy(Object.keys(CATALOGUE) as ErrorCode[], (code) => CATALOGUE[code].status);
  const entries = [...codes_of].map(([status, codes]) => {
    const name = RESPONSE_NAMES[status];
    const schema = { $ref: '#/components/schemas/Error' };
    const shown = Object.fromEntries(codes.map((code) => [code, { $ref: `#/components/examples/${code}` }]));
    const headers = status === 429 ? { headers: LIMIT_HEADERS } : {};
    return [
      name,
      { description: `Status ${status}.`, ...headers, content: { [JSON_TYPE]: { schema, examples: shown } } },
    ];
  });
  return Object.fromEntries(entries);
}

/** Returns the body of every error, by its code. Placeholders are in braces. */
function errorExamples() {
  const entries = Object.entries(CATALOGUE).map(([code, { message }]) => {
    const documentation = `https://play.example.com/docs/errors#${documentationAnchor(code as ErrorCode)}`;
    return [code, { value: { code, message, ray_id: RAY_ID, documentation } }];
  });
  return Object.fromEntries(entries);
}

/**
 * Drops the content types that Elysia could parse, which the generator lists: bodies are JSON only. Also drops the ids that
 * TypeBox adds to shapes.
 */
function dropOtherContent<Paths>(paths: Paths): Paths {
  return JSON.parse(JSON.stringify(paths), (name, value) =>
    name === 'application/x-www-form-urlencoded' || name === 'multipart/form-data' || name === '$id'
      ? undefined
      : value,
  );
}
