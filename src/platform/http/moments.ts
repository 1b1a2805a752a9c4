import { Type } from '@sinclair/typebox';
import { ServiceError } from '../errors.ts';

/** A moment of RFC 3339: date, time and offset. `Date.parse` alone would guess what other texts mean. */
const RFC_3339 = /^\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)$/;

/** A moment in a query. */
export const Moment = Type.String({ maxLength: 40, description: 'Unix milliseconds or RFC 3339.' });

/** Returns the moment in a query parameter as Unix milliseconds. Throws API_BAD_QUERY_PARAMETER. */
export function readMoment(parameter: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const milliseconds = /^\d+$/.test(text) ? Number(text) : parseRfc3339(text);
  if (Number.isFinite(milliseconds)) return milliseconds;
  throw new ServiceError('API_BAD_QUERY_PARAMETER', { parameter, error: 'expected Unix milliseconds or RFC 3339' });
}

/** Returns a moment of RFC 3339 as Unix milliseconds; NaN for any other text. */
export function parseRfc3339(text: string): number {
  return RFC_3339.test(text) ? Date.parse(text.toUpperCase().replace(' ', 'T')) : Number.NaN;
}
