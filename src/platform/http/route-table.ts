import { assert, ServiceError } from '../errors.ts';
import { createIdCheck, createPathReader, type RawParams } from './path.ts';
import type { Route } from './route.ts';

type Matchable = Pick<Route, 'method' | 'path'> & Partial<Pick<Route, 'free_params'>>;

/**
 * Throws if a route names no allowed callers, or does not say how it uses the game in its path. The service does not start
 * then.
 */
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

/** The path of a route, and the same split at its slashes. */
export interface SplitPath {
  path: string;
  parts: readonly string[];
}

export function splitPaths(routes: Matchable[]): SplitPath[] {
  return routes.map(({ path }) => ({ path, parts: path.split('/') }));
}

/**
 * Creates the function that returns whether the router matched a route by mistake, because the path belongs to another
 * route with another method. For example, `GET /lobbies/find` matches `GET /lobbies/:lobby_id`, although
 * `/lobbies/find` is a path for POST.
 */
export function createMismatchCheck(route: Matchable, paths: SplitPath[]): (params: RawParams) => boolean {
  const { path: own_path, free_params = [] } = route;
  if (!own_path.includes(':')) return () => false;
  const readPath = createPathReader(own_path);
  // For each other path that the router takes for this one, what it has instead of parameters, such as `find`.
  const mistaken = paths
    .filter(({ path }) => path !== own_path)
    .map(({ parts }) => Object.entries(readPath(parts) ?? {}).filter(([, value]) => !value.startsWith(':')))
    .filter((words) => words.some(([name]) => !free_params.includes(name)));
  return (params) => mistaken.some((words) => words.every(([name, word]) => params[name] === word));
}

/** Creates the function that returns the error for a request that no route matches. */
export function createNotFound(routes: Matchable[]) {
  const known = routes.map((route) => ({
    method: route.method,
    readPath: createPathReader(route.path),
    hasIds: createIdCheck(route),
  }));
  return (method: string, path: string): ServiceError => {
    const parts = path.split('/');
    const matches = ({ readPath, hasIds }: (typeof known)[number]) => {
      const params = readPath(parts);
      return params !== undefined && hasIds(params);
    };
    const allowed = known.filter(matches).map((route) => route.method);
    // The router did not match an allowed method if the path is written in another way, such as with a fragment.
    if (allowed.length === 0 || allowed.some((one) => one === method)) return new ServiceError('API_NOT_FOUND', {});
    return new ServiceError('API_METHOD_NOT_ALLOWED', { method, allowed_methods: [...new Set(allowed)].join(', ') });
  };
}
