import { assert, ServiceError } from '../errors.ts';
import { createPathReader } from './path.ts';
import type { Method, Route } from './route.ts';

/** Throws if a route does not name its allowed callers: the service does not start with one. */
export function assertDenyByDefault(routes: Route[]): void {
  for (const { method, path, allow, access } of routes) {
    assert(allow === 'anyone' || allow.length > 0, `${method} ${path} names the kinds of token it takes`);
    const names_tenant = path.includes(':game_id');
    assert(!names_tenant || access !== undefined, `${method} ${path} says what it does with the game it names`);
    assert(names_tenant || access === undefined, `${method} ${path} names the game it has access to`);
  }
}

/** Throws if two routes have one name: generated clients have one method for each name. */
export function assertNamedOnce(routes: Route[]): void {
  const names = new Map<string, string>();
  for (const { operation, method, path } of routes) {
    const other = names.get(operation);
    assert(other === undefined, `${method} ${path} has a name of its own: ${other} is called "${operation}" too`);
    names.set(operation, `${method} ${path}`);
  }
}

/** Creates the function that returns the error for a request that no route matches. */
export function createNotFound(routes: { method: Method; path: string }[]) {
  const known = routes.map(({ method, path }) => ({ method, readPath: createPathReader(path) }));
  return (method: string, path: string): ServiceError => {
    const parts = path.split('/');
    const allowed = known.filter(({ readPath }) => readPath(parts)).map((route) => route.method);
    // The router did not match an allowed method if the path is written in another way, such as with a fragment.
    if (allowed.length === 0 || allowed.some((one) => one === method)) return new ServiceError('API_NOT_FOUND', {});
    return new ServiceError('API_METHOD_NOT_ALLOWED', { method, allowed_methods: [...new Set(allowed)].join(', ') });
  };
}
