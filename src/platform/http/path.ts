import { ServiceError } from '../errors.ts';
import { isStorable } from './json.ts';
import type { Route } from './route.ts';
import { isUuid } from './shapes.ts';

/** Returns the path of a request's URL. */
export function pathOf(url: string): string {
  const path = url.slice(url.indexOf('/', url.indexOf('//') + 2));
  const end = path.search(/[?#]/);
  return end < 0 ? path : path.slice(0, end);
}

/** Returns the parameters of a path that is split at its slashes; undefined if it does not match. */
export type PathReader = (parts: readonly string[]) => Record<string, string> | undefined;

export function createPathReader(pattern: string): PathReader {
  const expected = pattern.split('/').map((part, index) => ({ part, index }));
  const words = expected.filter(({ part }) => !part.startsWith(':'));
  const params = expected
    .filter(({ part }) => part.startsWith(':'))
    .map(({ part, index }) => ({ name: part.slice(1), index }));
  return (parts) => {
    if (expected.length !== parts.length || words.some(({ part, index }) => parts[index] !== part)) return undefined;
    return Object.fromEntries(params.map(({ name, index }) => [name, decode(parts[index] ?? '')]));
  };
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Parameters of a path before they are checked. Null stands for one that cannot be decoded. */
export type RawParams = Record<string, string | null>;

/** Creates the function that returns whether all parameters of a path that must be ids are ids. */
export function createIdCheck({ path, free_params = [] }: { path: string; free_params?: readonly string[] }) {
  const ids = paramNamesOf(path).filter((name) => !free_params.includes(name));
  return (raw: RawParams): boolean => ids.every((name) => isUuid(raw[name] ?? ''));
}

/** Creates the function that checks the parameters of a route's path. It throws API_NOT_FOUND, because a bad id names nothing. */
export function createParamsReader({ path, free_params }: Route): (raw: RawParams) => Record<string, string> {
  const names = paramNamesOf(path).map((name) => ({ name, is_free: free_params.includes(name) }));
  return (raw) => {
    const params: Record<string, string> = {};
    for (const { name, is_free } of names) {
      const value = raw[name] ?? null;
      if (value === null || (is_free ? !isStorable(value) : !isUuid(value)))
        throw new ServiceError('API_NOT_FOUND', {});
      params[name] = is_free ? value : value.toLowerCase();
    }
    return params;
  };
}

/** Returns the names of the parameters in a route's path. */
export function paramNamesOf(path: string): string[] {
  return [...path.matchAll(/:([a-z_]+)/g)].map(([, name = '']) => name);
}
