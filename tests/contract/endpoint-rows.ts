import { expect, test } from 'bun:test';
import type { Answer, Api } from '../support/api.ts';
import { outcomeOf } from '../support/suite.ts';
import type { Tenant } from '../support/tenant.ts';
import { EMPTY, expectShape, type Shape, withoutOptional, wrongBodies } from './exact-shapes.ts';

/** Every kind of token, by its name in `Tenant.tokens`. */
const KINDS = [
  'identity',
  'cloud',
  'service',
  'public',
  'development',
  'lobby',
  'player',
  'development_player',
  'device_link',
  'share',
] as const;
type Kind = (typeof KINDS)[number];

/** What the tests of rows need: a service, and a tenant with one of everything. */
export interface World {
  api: Api;
  tenant: Tenant;
}

/** A row of a table of endpoints: the request, its callers, and the answer. */
export interface EndpointRow {
  name: string;
  method: string;
  /** As in the specification, after {base_url}. */
  path: string;
  /** The allowed kinds of token (the reference API's where the specification shows none); [] needs no token. */
  allow: readonly Kind[];
  /** The parameters of the query, each with a good value; those that end in "?" are optional. */
  query?: Record<string, (world: World) => string>;
  /** The shape of the body. */
  request_shape?: Shape;
  /** A good body with every member. Called for each request, because some things can be done once only. */
  sample?: (world: World) => object | Promise<object>;
  /** The shape of the answer. */
  response_shape: Shape;
}

/** Tests each row: its answer, its body, its required query parameters, and its callers. */
export function testRows(rows: readonly EndpointRow[], getWorld: () => World): void {
  test.each(rows)('$name is $method $path, and answers field for field', async (row) => {
    const world = getWorld();
    for (const query of queriesOf(row, world)) expectShape(await call(world, row, { query }), row.response_shape);
    const sample = await row.sample?.(world);
    const body = sample && withoutOptional(row.request_shape ?? EMPTY, sample);
    const answer = await call(world, row, { query: queryOf(row, world, requiredOf(row)), body });
    expectShape(answer, row.response_shape);
    // An empty list would not show the shape of its items.
    expect(Object.entries(answer).filter(([, list]) => Array.isArray(list) && list.length === 0)).toEqual([]);
  });

  const with_bodies = rows.filter(({ request_shape }) => request_shape !== undefined);
  if (with_bodies.length > 0) {
    test.each(with_bodies)('$name accepts its body, and refuses a missing member or another type', async (row) => {
      const world = getWorld();
      const bodies = [...wrongBodies(row.request_shape ?? EMPTY, await row.sample?.(world))];
      expect(bodies.length).toBeGreaterThan(2);
      for (const [what, body] of bodies) {
        expect([what, outcomeOf(await send(world, row, { body }))]).toEqual([what, '400 API_BAD_BODY']);
      }
    });
  }

  const with_queries = rows.filter((row) => requiredOf(row).length > 0);
  if (with_queries.length > 0) {
    test.each(with_queries)('$name refuses a query without its required parameters', async (row) => {
      const world = getWorld();
      const outcome = outcomeOf(await send(world, row, { query: {} }));
      expect(outcome).toBe('400 API_BAD_QUERY_PARAMETER');
    });
  }

  test.each(rows.filter(({ allow }) => allow.length > 0))('$name accepts tokens of $allow only', async (row) => {
    const world = getWorld();
    expect(outcomeOf(await send(world, row, { token: undefined }))).toBe('401 API_UNAUTHORIZED');
    for (const kind of KINDS) {
      const body = await row.sample?.(world);
      const outcome = outcomeOf(await send(world, row, { token: world.tenant.tokens[kind], body }));
      const is_of_environment = kind === 'service' && row.path.includes('{environment_id}');
      const refused = is_of_environment ? '403 API_FORBIDDEN' : '401 CLAIMS_MISSING_ENTITLEMENT';
      expect([kind, outcome]).toEqual([kind, row.allow.includes(kind) ? '200' : refused]);
    }
  });
}

interface Sent {
  query?: Record<string, string>;
  body?: unknown;
  token?: string | undefined;
}

/** Sends a row's request; `sent` replaces parts of it. */
async function send(world: World, row: EndpointRow, sent: Sent): Promise<Answer> {
  const { api, tenant } = world;
  const [kind = ''] = row.allow;
  const { query = queryOf(row, world, requiredOf(row)) } = sent;
  const body = sent.body === undefined ? await row.sample?.(world) : sent.body;
  const path = row.path.replace(/\{(\w+)\}/g, (_, name) => tenant.ids[name] ?? `no-${name}`);
  const search = new URLSearchParams(query).toString();
  const token = 'token' in sent ? sent.token : tenant.tokens[kind];
  return await api.call(row.method, search === '' ? path : `${path}?${search}`, { token, body });
}

/** Returns the body of an answer, which must be a success. */
async function call(world: World, row: EndpointRow, sent: Sent): Promise<object> {
  const answer = await send(world, row, sent);
  if (answer.status !== 200) throw new Error(`${row.name}: ${answer.status} ${JSON.stringify(answer.body)}`);
  expect(answer.headers.get('content-type')).toStartWith('application/json');
  return answer.body;
}

/** Returns a query with all parameters, and one for each optional parameter on its own. */
function queriesOf(row: EndpointRow, world: World): Record<string, string>[] {
  const names = Object.keys(row.query ?? {});
  const optional = names.filter((name) => name.endsWith('?'));
  return [names, ...optional.map((name) => [...requiredOf(row), name])].map((some) => queryOf(row, world, some));
}

const requiredOf = ({ query = {} }: EndpointRow): string[] => Object.keys(query).filter((name) => !name.endsWith('?'));

function queryOf({ query = {} }: EndpointRow, world: World, names: string[]): Record<string, string> {
  return Object.fromEntries(names.map((name) => [name.replace('?', ''), query[name]?.(world) ?? '']));
}
