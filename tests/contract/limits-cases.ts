import type { Api } from '../support/api.ts';
import type { GoodRequests, Sent } from './limits-requests.ts';
import {
  type Field,
  listFields,
  listTrials,
  putValue,
  type Shape,
  sampleOf,
  type Trial,
  valueAt,
} from './limits-shapes.ts';

/** An operation that reads a query or a body, from the API document. */
export interface Operation {
  /** For example "POST /group/groups". */
  name: string;
  method: string;
  path: string;
  /** The kinds of token that it accepts; none if it needs no token. */
  kinds: string[];
  /** The query as an object of its parameters. */
  query: Shape | undefined;
  body: Shape | undefined;
}

/** A request with one value to try, and the path that its error names. */
export interface Case {
  place: string[];
  sent: Sent;
  is_good: boolean;
  /** The code of a refusal. */
  code: 'API_BAD_BODY' | 'API_BAD_QUERY_PARAMETER' | 'API_BODY_TOO_LARGE';
}

interface Described {
  description?: string;
  parameters?: { name: string; in: string; required: boolean; schema: Shape }[];
  requestBody?: { content: { 'application/json': { schema: Shape } } };
  responses: Record<string, { description: string }>;
}

export async function listOperations(api: Api): Promise<Operation[]> {
  const { paths, components } = await api.ok('GET', '/openapi.json');
  const all = Object.entries<Record<string, Described>>(expandReferences(paths, components.schemas)).flatMap(
    ([path, methods]) =>
      Object.entries(methods).map(([method, described]) => toOperation(method.toUpperCase(), path, described)),
  );
  return all.filter(({ query, body }) => query !== undefined || body !== undefined);
}

/** Returns a copy with each reference replaced by its named shape. */
function expandReferences<Value>(value: Value, schemas: Record<string, unknown>): Value {
  return JSON.parse(JSON.stringify(value), (_, part) => {
    const [, name] = /^#\/components\/schemas\/(.+)$/.exec(part?.$ref ?? '') ?? [];
    return name === undefined ? part : expandReferences(schemas[name], schemas);
  });
}

function toOperation(method: string, path: string, described: Described): Operation {
  const { description = '', parameters = [], requestBody, responses } = described;
  const [, kinds = ''] = /^Takes a token of kind ([^.]+)\./.exec(description) ?? [];
  const query_parameters = parameters.filter((parameter) => parameter.in === 'query');
  const required = query_parameters.filter((parameter) => parameter.required).map(({ name }) => name);
  const properties = Object.fromEntries(query_parameters.map(({ name, schema }) => [name, schema]));
  // The document has a body for every POST; only a route that reads it refuses a bad one.
  const is_read = responses['400']?.description.includes('API_BAD_BODY') ?? false;
  const body = is_read ? requestBody?.content['application/json'].schema : undefined;
  return {
    name: `${method} ${path}`,
    method,
    path,
    kinds: kinds.split(' or ').filter((kind) => kind !== ''),
    query: query_parameters.length === 0 ? undefined : { type: 'object', properties, required },
    // Uploaded files have no shape.
    body: body?.description === 'The bytes of the file.' ? undefined : body,
  };
}

/** Returns an operation's good request: the known values, and minimal values of the shapes. */
export function makeGood({ name, kinds, query, body }: Operation, good: GoodRequests): Sent {
  const { tenant, administrator_token, of } = good;
  const tokens: Record<string, string> = { ...tenant.tokens, identity: administrator_token };
  const kind = kinds.includes('cloud') ? 'cloud' : (kinds[0] ?? '');
  const known = of[name.replace(' /v1/', ' /matchmaker/')]?.() ?? {};
  return {
    ...(kind === '' ? {} : { token: tokens[kind] }),
    ...known,
    path: { ...tenant.ids, ...known.path },
    ...(query ? { query: known.query ?? textsOf(sampleOf(query)) } : {}),
    ...(body ? { body: known.body ?? sampleOf(body) } : {}),
  };
}

/** Lists every field that an operation reads. */
export function listReadFields({ query, body }: Operation, sent: Sent): Field[] {
  const query_cases = query ? listFields(query, sent.query).slice(1) : [];
  return [...query_cases, ...(body ? listFields(body, sent.body) : [])];
}

export function listCases(operation: Operation, make: () => Sent): Case[] {
  return [...listQueryCases(operation, make), ...listBodyCases(operation, make)];
}

function listBodyCases({ name, body: shape }: Operation, make: () => Sent): Case[] {
  if (!shape) return [];
  const code = 'API_BAD_BODY';
  const field_cases = listFields(shape, make().body).flatMap((field) => {
    const { path: place } = field;
    return toCases(listTrials(field, valueAt(make().body, place)), (value) => {
      const sent = make();
      return { place, code, sent: { ...sent, body: JSON.stringify(putValue(shape, sent.body, place, value)) } };
    });
  });
  const raw = rawBodiesOf(name).map((one) => ({
    ...one,
    place: [],
    is_good: false,
    sent: { ...make(), body: one.body },
  }));
  return [...field_cases, ...raw];
}

const BODY_BYTES_MAX = 1_048_576;
/** The limits of operations that have another one. */
const BODY_BYTES_MAX_OF: Record<string, number> = { 'POST /cloud/games/{game_id}/cdn/sites': 4 * BODY_BYTES_MAX };
const DEPTH_MAX = 64;

function rawBodiesOf(operation: string) {
  const bytes_max = BODY_BYTES_MAX_OF[operation] ?? BODY_BYTES_MAX;
  return [
    { body: '{', code: 'API_BAD_BODY' },
    { body: 'x', code: 'API_BAD_BODY' },
    { body: `{"x":${'['.repeat(DEPTH_MAX)}${']'.repeat(DEPTH_MAX)}}`, code: 'API_BAD_BODY' },
    { body: `{"x":"${'x'.repeat(bytes_max - 7)}"}`, code: 'API_BODY_TOO_LARGE' },
  ] as const;
}

/** The reference API declares a query here and ignores it. */
const IGNORES_QUERY = 'GET /games/{game_id}/environments/{environment_id}/builds/{build_id}';

function listQueryCases({ name: operation, query: shape }: Operation, make: () => Sent): Case[] {
  if (!shape) return [];
  const is_ignored = operation === IGNORES_QUERY;
  return listFields(shape, make().query)
    .slice(1)
    .flatMap((field) => {
      const [name = ''] = field.path;
      return toCases(listTextTrials(field, !is_ignored), (value) => {
        const sent = make();
        const { [name]: _, ...others } = sent.query ?? {};
        const query = value === undefined ? others : { ...others, [name]: String(value) };
        return { place: [name], code: 'API_BAD_QUERY_PARAMETER', sent: { ...sent, query } };
      });
    });
}

/** Parameters with a grammar of their own: good and bad values within their length. */
const GRAMMARS: Record<string, Trial> = {
  tags_json: {
    good: ['{}', JSON.stringify({ name: 'x'.repeat(12_288 - 11) })],
    bad: ['', 'x', '[]', 'null', '1', '{"a":1}', '{"a":null}'],
  },
  identity_ids: {
    good: [crypto.randomUUID(), Array.from({ length: 64 }, () => crypto.randomUUID()).join()],
    bad: ['x', Array.from({ length: 65 }, () => crypto.randomUUID()).join()],
  },
  query_start_ts: { good: ['0', '9'.repeat(40), '2026-01-02T03:04:05.678Z'], bad: ['', 'x', '-', '-5', 'May 3'] },
  query_end_ts: { good: ['0', '9'.repeat(40), '2026-01-02T03:04:05.678Z'], bad: ['', 'x', '-', '-5', 'May 3'] },
  anchor: { good: ['0', '9'.repeat(40), '2026-01-02T03:04:05.678Z'], bad: ['', 'x', '-', '-5', 'May 3'] },
  before_create_ts: {
    good: ['1970-01-01T00:00:00Z', '2026-01-02T03:04:05.678+01:00'],
    bad: ['', 'x', '-', '-5', 'May 3'],
  },
};

/** Texts that are not of a type. */
const WRONG_TEXTS: Record<string, string[]> = {
  integer: ['', ' ', 'x', '1.5', '1e1', '0x1', '٣', '1'.repeat(400)],
  number: ['', ' ', 'x', 'true', '0x10', '1e1', '1,5', 'NaN', 'Infinity', '٣', '1'.repeat(400)],
  boolean: ['', ' ', 'x', '2', 'null'],
};

/** Parameters that require each other: the good requests have both. */
const PAIRED = ['latitude', 'longitude'];

/** Lists the values to try in a parameter. Every value in a query is text. */
function listTextTrials(field: Field, is_used: boolean): Trial {
  const { path, shape } = field;
  const { type = '' } = shape;
  const presence = PAIRED.includes(path.join()) ? 'required' : field.presence;
  const trial = listTrials({ ...field, presence }, undefined);
  // The anchor of a list of people has a pattern, and that of a version history is a moment.
  const grammar = shape.pattern === undefined ? GRAMMARS[path.join()] : undefined;
  const kind = type === 'integer' || type === 'number' ? 'number' : 'string';
  const bad = trial.bad.filter((value) => value === undefined || (typeof value === kind && type !== 'boolean'));
  return {
    good: grammar
      ? [...grammar.good, ...(presence === 'optional' ? [undefined] : [])]
      : trial.good.filter((value) => value !== null),
    bad: [...bad, ...(WRONG_TEXTS[String(type)] ?? []), ...(is_used ? (grammar?.bad ?? []) : [])],
  };
}

/** Returns each parameter as text. */
function textsOf(values: unknown): Record<string, string> {
  return Object.fromEntries(Object.entries(values as object).map(([name, value]) => [name, String(value)]));
}

function toCases(trial: Trial, make: (value: unknown) => Omit<Case, 'is_good'>): Case[] {
  return (['good', 'bad'] as const).flatMap((kind) =>
    trial[kind].map((value) => ({ ...make(value), is_good: kind === 'good' })),
  );
}
