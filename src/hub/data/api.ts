import type { paths } from './api-types.d.ts';
import { isPassing, Unreachable, untilAnswered } from './request.ts';
import { callApi } from './session.ts';

/** The answer of a path of the API, by method. */
export type Answer<Path extends keyof paths, Method extends keyof paths[Path]> = paths[Path][Method] extends {
  responses: { 200: { content: { 'application/json': infer Body } } };
}
  ? Body
  : never;

/** The body that a path of the API takes, by method. */
export type RequestBody<Path extends keyof paths, Method extends keyof paths[Path]> = paths[Path][Method] extends {
  requestBody?: { content: { 'application/json': infer Body } };
}
  ? Body
  : undefined;

/** `{ game_id: string }` for '/cloud/games/{game_id}'. */
export type Parameters<Path extends string> = Path extends `${string}{${infer Name}}${infer Rest}`
  ? { [Key in Name]: string } & Parameters<Rest>
  : unknown;

export type Query = Record<string, string | undefined>;

type PathsOf<Method extends string> = {
  [Path in keyof paths]: paths[Path] extends { [Key in Method]: object } ? Path : never;
}[keyof paths];

/** Paths that can be read. */
export type Readable = PathsOf<'get'>;

/** Paths whose answer can be watched. */
export type Watchable = {
  [Path in Readable]: Answer<Path, 'get'> extends { watch: { index: string } } ? Path : never;
}[Readable];

/** Returns a path with its parameters and query. */
export function toPath<Path extends string>(path: Path, parameters: Parameters<Path>, query: Query = {}): string {
  const values = parameters as Record<string, string>;
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(values[name] ?? ''));
  const given = Object.entries(query).filter((entry): entry is [string, string] => entry[1] !== undefined);
  return given.length === 0 ? filled : `${filled}?${new URLSearchParams(given)}`;
}

/**
 * Reads a path, again and again while the service does not answer, or refuses for a passing reason, because a page has
 * nothing else to show. Gives up once `until` is aborted. Throws Refused.
 */
export async function get<Path extends Readable>(
  path: Path,
  parameters: Parameters<Path>,
  query?: Query,
  until?: AbortSignal,
): Promise<Answer<Path, 'get'>> {
  // A page shows why /health/ready is refused.
  const repeats = (error: unknown) => (path === '/health/ready' ? error instanceof Unreachable : isPassing(error));
  return await untilAnswered(() => callApi('GET', toPath(path, parameters, query), { until }), {
    until,
    repeats,
  });
}

export async function post<Path extends PathsOf<'post'>>(
  path: Path,
  parameters: Parameters<Path>,
  body: RequestBody<Path, 'post'>,
): Promise<Answer<Path, 'post'>> {
  return await callApi('POST', toPath(path, parameters), { body });
}

export async function put<Path extends PathsOf<'put'>>(
  path: Path,
  parameters: Parameters<Path>,
  body: RequestBody<Path, 'put'>,
): Promise<Answer<Path, 'put'>> {
  return await callApi('PUT', toPath(path, parameters), { body });
}

export async function patch<Path extends PathsOf<'patch'>>(
  path: Path,
  parameters: Parameters<Path>,
  body: RequestBody<Path, 'patch'>,
): Promise<Answer<Path, 'patch'>> {
  return await callApi('PATCH', toPath(path, parameters), { body });
}

export async function remove<Path extends PathsOf<'delete'>>(
  path: Path,
  parameters: Parameters<Path>,
): Promise<Answer<Path, 'delete'>> {
  return await callApi('DELETE', toPath(path, parameters));
}
