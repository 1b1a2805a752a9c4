import { isToken } from '../../platform/http/token.ts';
import type { CdnConfig, CdnRoute } from './config.ts';
import { globProblem } from './globs.ts';
import { below, type ProblemPath } from './problem-paths.ts';

export const ROUTES_MAX = 32;
export const MIDDLEWARES_MAX = 32;
export const HEADERS_MAX = 32;
export const HEADER_NAME_MAX = 512;
export const HEADER_VALUE_MAX = 1_024;
export const PRIORITY_MAX = 100;

/** Returns what is wrong with a version's site settings. */
export function cdnProblems({ site_id, routes = [] }: CdnConfig, is_site: boolean): ProblemPath[] {
  return [
    ...(site_id === undefined ? [['no-site-id']] : []),
    ...(site_id !== undefined && !is_site ? [['site-id', 'not-found']] : []),
    ...(routes.length > ROUTES_MAX ? [['routes-meta', 'too-many']] : []),
    ...routes.slice(0, ROUTES_MAX).flatMap((route, index) => {
      const is_repeated = routes.findIndex(({ glob }) => glob === route.glob) < index;
      return below(['routes', String(index)], routeProblems(route, is_repeated));
    }),
  ];
}

function routeProblems({ glob, priority, middlewares }: CdnRoute, is_repeated: boolean): ProblemPath[] {
  const custom = middlewares.filter(({ kind }) => kind.custom_headers !== undefined);
  const glob_problem = globProblem(glob);
  return [
    ...(glob_problem ? [['glob', glob_problem]] : []),
    ...(is_repeated ? [['glob', 'not-unique']] : []),
    ...(priority > PRIORITY_MAX ? [['priority', 'too-high']] : []),
    ...(priority < 0 ? [['priority', 'too-low']] : []),
    ...(middlewares.length > MIDDLEWARES_MAX ? [['middlewares-meta', 'too-many']] : []),
    ...middlewares.slice(0, MIDDLEWARES_MAX).flatMap((middleware, index) => {
      const headers = middleware.kind.custom_headers?.headers ?? [];
      const is_second = custom.indexOf(middleware) > 0;
      return below(
        ['middlewares', String(index)],
        [...(is_second ? [['not-unique']] : []), ...below(['custom-headers'], headersProblems(headers))],
      );
    }),
  ];
}

function headersProblems(headers: { name: string; value: string }[]): ProblemPath[] {
  return [
    ...(headers.length > HEADERS_MAX ? [['headers-meta', 'too-many']] : []),
    ...headers
      .slice(0, HEADERS_MAX)
      .flatMap(({ name, value }, index) =>
        below(
          ['headers', String(index)],
          [
            ...(isToken(name) && !TRANSPORT_HEADERS.test(name) ? [] : [['name', 'invalid']]),
            ...(Buffer.byteLength(name) > HEADER_NAME_MAX ? [['name', 'too-long']] : []),
            ...(isHeaderValue(value) ? [] : [['value', 'invalid']]),
            ...(Buffer.byteLength(value) > HEADER_VALUE_MAX ? [['value', 'too-long']] : []),
          ],
        ),
      ),
  ];
}

/**
 * Headers of the transport, which only the service sets, or by which a proxy sends a file of its own instead. Versions of
 * earlier releases may have some.
 */
export const TRANSPORT_HEADERS =
  /^(connection|content-(length|range)|date|keep-alive|set-cookie|te|trailer|transfer-encoding|upgrade|x-accel-redirect|x-sendfile)$/i;

/** Accepts values without characters that end the header or that clients read differently. */
export function isHeaderValue(text: string): boolean {
  return /^[\t\x20-\x7e\x80-\xff]*$/.test(text);
}
