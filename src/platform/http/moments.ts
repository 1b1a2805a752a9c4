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

/** Returns the moment of RFC 3339 in a query parameter as Unix milliseconds. Throws API_BAD_QUERY_PARAMETER. */
export function readRfc3339(parameter: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const milliseconds = parseRfc3339(text);
  if (Number.isFinite(milliseconds)) return milliseconds;
  const error = 'expected RFC 3339, like 2026-01-01T12:00:00Z';
  throw new ServiceError('API_BAD_QUERY_PARAMETER', { parameter, error });
}

/** Returns a moment of RFC 3339 as Unix milliseconds; NaN for any other text, and for a day that its month does not have. */
function parseRfc3339(text: string): number {
  if (!RFC_3339.test(text) || !isDay(text.slice(0, 10))) return Number.NaN;
  return Date.parse(text.toUpperCase().replace(' ', 'T'));
}

/** Returns whether there is such a day. `Date` takes February 30 for March 2. */
function isDay(day: string): boolean {
  const parsed = new Date(`${day}T00:00:00Z`);
  return !Number.isNaN(parsed.getTime()) && parsed.toISOString().startsWith(day);
}
