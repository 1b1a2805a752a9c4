import type { TObject, TSchema } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { ServiceError } from '../errors.ts';
import { isStorable } from './json.ts';
import { compileShape, describeMessage, isList } from './shapes.ts';

const NUMBERS = new Map([
  ['integer', { pattern: /^-?\d+$/, error: 'expected a whole number' }],
  ['number', { pattern: /^-?\d+(\.\d+)?$/, error: 'expected a number' }],
]);

/** The query of a URL, split into its parameters. */
export interface Search {
  params: URLSearchParams;
  /** The number in the index of a poll: that of the answer that it has seen. */
  number: number | undefined;
}

/** Creates the function that splits the query of a URL. `readIndex` reads the number from the parameter `watch_index`. */
export function createSearchReader(
  readIndex: (index: string | undefined) => number | undefined,
): (url: string) => Search {
  const read = rememberLast((text: string) => {
    const params = new URLSearchParams(text);
    return { params, number: readIndex(params.get('watch_index') ?? undefined) };
  });
  return (url) => {
    const start = url.indexOf('?');
    return read(start < 0 ? '' : url.slice(start));
  };
}

/** Creates the function that checks a query against its shape. It throws API_BAD_QUERY_PARAMETER. */
export function createQueryReader(shape: TObject): (params: URLSearchParams) => object {
  const compiled = compileShape(shape);
  const is_all_text = Object.values(shape.properties).every(({ type }) => type === 'string');
  return rememberLast((params) => {
    const given = Object.fromEntries(params);
    for (const [name, property] of Object.entries(shape.properties)) {
      const values = params.getAll(name);
      if (values.length > 1) given[name] = joinRepeated(name, values, property);
    }
    for (const [name, text] of Object.entries(given)) {
      // Value.Convert would cut 1.9 to 1, and take "true" for 1.
      const number = NUMBERS.get(shape.properties[name]?.type);
      const is_wrong = number !== undefined && !number.pattern.test(text);
      const error = is_wrong ? number.error : 'expected a text without the character zero';
      if (is_wrong || !isStorable(text)) throw new ServiceError('API_BAD_QUERY_PARAMETER', { parameter: name, error });
    }
    const query = is_all_text ? given : Value.Convert(shape, given);
    if (compiled.accepts(query)) return withoutIndex(query);
    const [problem] = compiled.problems(query);
    throw new ServiceError('API_BAD_QUERY_PARAMETER', {
      parameter: problem?.path[0] ?? '',
      error: problem ? describeMessage(problem) : 'unreadable',
    });
  });
}

/** The index of a watcher does not change what it watches. */
function withoutIndex({ watch_index: _index, ...query }: { watch_index?: unknown }): object {
  return query;
}

/** Joins the values of a list. Throws API_BAD_QUERY_PARAMETER for a parameter that takes one value. */
function joinRepeated(name: string, values: string[], shape: TSchema): string {
  if (isList(shape)) return values.join(',');
  const error = `it was given ${values.length} times; give it once`;
  throw new ServiceError('API_BAD_QUERY_PARAMETER', { parameter: name, error });
}

/** Returns a function that repeats its last result for the same key: requests that watch one thing have the same query. */
function rememberLast<Key, Value>(read: (key: Key) => Value): (key: Key) => Value {
  let last: { key: Key; value: Value } | undefined;
  return (key) => {
    if (last?.key !== key) last = { key, value: read(key) };
    return last.value;
  };
}
