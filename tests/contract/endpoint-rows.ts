import { expect, test } from 'bun:test';
import type { Answer, Api } from '../support/api.ts';
import { outcomeOf } from '../support/suite.ts';
import type { Tenant } from '../support/tenant.ts';
import { EMPTY, expectShape, type Shape, withoutOptional, wrongBodies } from './exact-shapes.ts';

/** Every kind of token that there is, by its name in `Tenant.tokens`. */
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
] as const;
type Kind = (typeof KINDS)[number];

/** What tests of rows have: a service, and somebody who has one of everything. */
export interface World {
  api: Api;
  tenant: Tenant;
}

/** A row of a table of endpoints: what is sent, by whom, and what comes back. */
export interface EndpointRow {
  name: string;
  method: string;
  /** As the specification has it, behind {base_url}. */
  path: string;
  /** The kinds of token that are let in (the field's, where the specification shows none); nobody needs one for []. */
  allow: readonly Kind[];
  /** Parameters of the query with a good value each; those that end in "?" may be left out. */
  query?: Record<string, (world: World) => string>;
  /** The body. */
  takes?: Shape;
  /** A good body that has every member. Asked for each request: some things can be done once. */
  sample?: (world: World) => object | Promise<object>;
  /** The response. */
  gives: Shape;
}

/** Tests for each row: it is there, it gives what it says, it needs what it says, and it is for whom it says. */
export function testRows(rows: readonly EndpointRow[], getWorld: () => World): void {
  test.each(rows)('$name is $method $path, and answers field for field', async (row) => {
    const world = getWorld();
    for (const query of queriesOf(row, world)) expectShape(await ask(world, row, { query }), row.gives);
    const sample = await row.sample?.(world);
    const body = sample && withoutOptional(row.takes ?? EMPTY, sample);
    const answer = await ask(world, row, { query: queryOf(row, world, requiredOf(row)), body });
    expectShape(answer, row.gives);
    // A list that is empty would prove nothing of what is in it.
    expect(Object.entries(answer).filter(([, list]) => Array.isArray(list) && list.length === 0)).toEqual([]);
  });

  const with_bodies = rows.filter(({ takes }) => takes !== undefined);
  if (with_bodies.length > 0) {
    test.each(with_bodies)('$name takes its body, and none that lacks a part or has another type', async (row) => {
      const world = getWorld();
      const bodies = [...wrongBodies(row.takes ?? EMPTY, await row.sample?.(world))];
      expect(bodies.length).toBeGreaterThan(2);
      for (const [what, body] of bodies) {
        expect([what, outcomeOf(await send(world, row, { body }))]).toEqual([what, '400 API_BAD_BODY']);
      }
    });
  }

  const with_queries = rows.filter((row) => requiredOf(row).length > 0);
  if (with_queries.length > 0) {
    test.each(with_queries)('$name needs what its query must have', async (row) => {
      const world = getWorld();
      const outcome = outcomeOf(await send(world, row, { query: {} }));
      expect(outcome).toBe('400 API_BAD_QUERY_PARAMETER');
    });
  }

  test.each(rows.filter(({ allow }) => allow.length > 0))('$name is for tokens of $allow alone', async (row) => {
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

/** Sends what a row says, or something else in its place. */
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

/** The body of an answer that must be a success. */
async function ask(world: World, row: EndpointRow, sent: Sent): Promise<object> {
  const answer = await send(world, row, sent);
  if (answer.status !== 200) throw new Error(`${row.name}: ${answer.status} ${JSON.stringify(answer.body)}`);
  expect(answer.headers.get('content-type')).toStartWith('application/json');
  return answer.body;
}

/** Queries with all parameters, and with one of those each that may be left out. */
function queriesOf(row: EndpointRow, world: World): Record<string, string>[] {
  const names = Object.keys(row.query ?? {});
  const optional = names.filter((name) => name.endsWith('?'));
  return [names, ...optional.map((name) => [...requiredOf(row), name])].map((some) => queryOf(row, world, some));
}

const requiredOf = ({ query = {} }: EndpointRow): string[] => Object.keys(query).filter((name) => !name.endsWith('?'));

function queryOf({ query = {} }: EndpointRow, world: World, names: string[]): Record<string, string> {
  return Object.fromEntries(names.map((name) => [name.replace('?', ''), query[name]?.(world) ?? '']));
}
