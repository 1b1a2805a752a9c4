import type { TObject, TSchema } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { ServiceError } from '../errors.ts';
import { isKept } from './body.ts';
import { compileShape, isList } from './shapes.ts';

const NUMBERS = new Map([
  ['integer', { pattern: /^-?\d+$/, error: 'expected a whole number' }],
  ['number', { pattern: /^-?\d+(\.\d+)?$/, error: 'expected a number' }],
]);

/** Makes the function that reads a query of a shape. Throws API_BAD_QUERY_PARAMETER. */
export function createQueryReader(shape: TObject): (search: URLSearchParams) => object {
  const compiled = compileShape(shape);
  const is_all_text = Object.values(shape.properties).every(({ type }) => type === 'string');
  return rememberLast((search) => {
    const given = Object.fromEntries(search);
    for (const [name, property] of Object.entries(shape.properties)) {
      const values = search.getAll(name);
      if (values.length > 1) given[name] = joinRepeated(name, values, property);
    }
    for (const [name, text] of Object.entries(given)) {
      // Value.Convert would cut 1.9 to 1, and take "true" for 1.
      const number = NUMBERS.get(shape.properties[name]?.type);
      const is_wrong = number !== undefined && !number.pattern.test(text);
      const error = is_wrong ? number.error : 'expected a text without the character zero';
      if (is_wrong || !isKept(text)) throw new ServiceError('API_BAD_QUERY_PARAMETER', { parameter: name, error });
    }
    const query = is_all_text ? given : Value.Convert(shape, given);
    if (compiled.accepts(query)) return query;
    const [problem] = compiled.problems(query);
    throw new ServiceError('API_BAD_QUERY_PARAMETER', {
      parameter: problem?.path[0] ?? '',
      error: problem?.message ?? 'unreadable',
    });
  });
}

/** A list's values, separated by commas. Throws API_BAD_QUERY_PARAMETER for a parameter that has one value only. */
function joinRepeated(name: string, values: string[], shape: TSchema): string {
  if (isList(shape)) return values.join(',');
  const error = `it was given ${values.length} times; give it once`;
  throw new ServiceError('API_BAD_QUERY_PARAMETER', { parameter: name, error });
}

/** Returns a function that does not read again what it read last: requests that watch one thing have the same query. */
export function rememberLast<Key, Value>(read: (key: Key) => Value): (key: Key) => Value {
  let last: { key: Key; value: Value } | undefined;
  return (key) => {
    if (last?.key !== key) last = { key, value: read(key) };
    return last.value;
  };
}
