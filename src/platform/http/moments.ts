import { Type } from '@sinclair/typebox';
import { ServiceError } from '../errors.ts';

/** A moment in a query. */
export const Moment = Type.String({ maxLength: 40, description: 'Unix milliseconds or RFC 3339.' });

/** Returns the moment in a query parameter as Unix milliseconds. Throws API_BAD_QUERY_PARAMETER. */
export function readMoment(parameter: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const milliseconds = /^\d+$/.test(text) ? Number(text) : Date.parse(text);
  if (Number.isFinite(milliseconds)) return milliseconds;
  throw new ServiceError('API_BAD_QUERY_PARAMETER', { parameter, error: 'expected Unix milliseconds or RFC 3339' });
}
