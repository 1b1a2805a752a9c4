import { toOpenAPISchema } from '@elysiajs/openapi';
import { type TSchema, Type } from '@sinclair/typebox';
import type { AnyElysia, DocumentDecoration } from 'elysia';
import { CATALOGUE, type ErrorCode } from '../errors.ts';
import type { Route } from './route.ts';
import { Uuid } from './shapes.ts';

/** Codes that every route may answer with. */
const EVERYWHERE: ErrorCode[] = [
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

const ErrorBody = Type.Object({
  code: Type.String(),
  message: Type.String(),
  ray_id: Type.String({ format: 'uuid' }),
  documentation: Type.String(),
  metadata: Type.Optional(Type.Unknown()),
});

/**
 * The API document (OpenAPI 3.1). Elysia's generator makes it from the app; since requests are checked by our own
 * pipeline, the shapes reach it as references beside the routes.
 */
export function describeApi(app: AnyElysia, routes: Route[], version: string) {
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
    components: { schemas: { Error: ErrorBody }, securitySchemes: { token: { type: 'http', scheme: 'bearer' } } },
    paths: dropOtherContent(paths),
  };
}

/** What the document says of a route besides its shapes. */
export function describeRoute(route: Route): DocumentDecoration {
  return {
    summary: route.summary,
    operationId: `${route.method.toLowerCase()}${route.path.replace(/[^a-z0-9]+/gi, '_')}`,
    tags: [route.path.split('/')[1] ?? ''],
    ...(route.allow === 'anyone' ? {} : { security: [{ token: [] }], description: describeKinds(route.allow) }),
  };
}

function describeKinds(kinds: readonly string[]): string {
  return `Takes a token of kind ${kinds.join(' or ')}.`;
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
  const codes: ErrorCode[] = [...EVERYWHERE, ...(route.allow === 'anyone' ? [] : WITH_TOKEN), ...route.errors];
  if (route.body || route.body_kind !== 'json') codes.push('API_BAD_BODY', 'API_BODY_TOO_LARGE');
  if (route.query) codes.push('API_BAD_QUERY_PARAMETER');
  const responses: Record<number, TSchema> = { 200: route.response ?? Type.Any({ description: 'Any JSON.' }) };
  for (const [status, listed] of Map.groupBy(new Set(codes.sort()), (code) => CATALOGUE[code].status)) {
    responses[status] = Type.Ref('#/components/schemas/Error', { description: listed.join(', ') });
  }
  return responses;
}

/** Bodies are JSON only; the generator also lists the forms that Elysia could parse. */
function dropOtherContent<Paths>(paths: Paths): Paths {
  return JSON.parse(JSON.stringify(paths), (name, value) =>
    name === 'application/x-www-form-urlencoded' || name === 'multipart/form-data' || name === '$id'
      ? undefined
      : value,
  );
}
