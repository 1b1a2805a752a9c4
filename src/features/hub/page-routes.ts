import mime from 'mime';
import Negotiator from 'negotiator';
import { ServiceError } from '../../platform/errors.ts';
import { addVary } from '../../platform/http/answers.ts';
import { route } from '../../platform/http/route.ts';
import { FILES_PATH, PAGE, readBundle, WORKER_NAME } from './bundle.ts';

/** Content codings in our order of preference, with the endings of their files. */
const CODINGS = { br: 'br', gzip: 'gz' } as const;
const FOR_GOOD = 'public, max-age=31536000, immutable';
/**
 * Allows nothing from other origins and nothing inline. No text becomes a script (Trusted Types), except the constant address
 * of the bots' script.
 */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  'trusted-types muster-bots',
].join('; ');
/** The bots connect to game servers, which may be anywhere. They know no more than a public token. */
const WORKER_POLICY = "default-src 'none'; connect-src 'self' ws: wss:";
/** All show one file, whose own router reads the path. */
const PATHS = [
  '/hub',
  '/hub/:game',
  '/hub/:game/:namespace',
  '/hub/:game/:namespace/:page',
  '/hub/:game/:namespace/:page/:id',
] as const;

/** Routes of the hub's page and its files. */
export function pageRoutes() {
  const page = { allow: 'anyone', is_page: true } as const;
  return [
    route('GET', '/', { ...page, summary: 'Returns the hub to browsers.' }, async ({ request }) => {
      // Programs that probe the root get JSON, as for any path without a route.
      if (!request.headers.get('accept')?.includes('text/html')) throw new ServiceError('API_NOT_FOUND', {});
      return await pageFor(request);
    }),
    ...PATHS.map((path) =>
      route(
        'GET',
        path,
        { ...page, summary: 'Returns a page of the hub.', free_params: ['game', 'namespace', 'page', 'id'] },
        async ({ request }) => await pageFor(request),
      ),
    ),
    route(
      'GET',
      `${FILES_PATH}:name`,
      { ...page, summary: 'Returns a file of the hub.', free_params: ['name'] },
      async ({ request, params }) => {
        // Only the routes of the page answer it, with its policy.
        if (params.name === PAGE) throw new ServiceError('API_NOT_FOUND', {});
        const response = await fileFor(request, params.name);
        response.headers.set('cache-control', FOR_GOOD);
        if (WORKER_NAME.test(params.name)) response.headers.set('content-security-policy', WORKER_POLICY);
        return response;
      },
    ),
  ];
}

async function pageFor(request: Request): Promise<Response> {
  const response = await fileFor(request, PAGE);
  response.headers.set('content-security-policy', POLICY);
  response.headers.set('referrer-policy', 'no-referrer');
  response.headers.set('cross-origin-opener-policy', 'same-origin');
  response.headers.set('cache-control', 'no-cache');
  addVary(response.headers, 'Accept');
  return response;
}

/** Returns a file in the best coding that the client accepts. Throws API_NOT_FOUND. */
async function fileFor(request: Request, name: string): Promise<Response> {
  const bundle = await readBundle();
  const content = bundle.get(name);
  if (!content) throw new ServiceError('API_NOT_FOUND', {});
  const type = mime.getType(name) ?? 'application/octet-stream';
  const headers = new Headers({ 'content-type': type.startsWith('text/') ? `${type}; charset=utf-8` : type });
  addVary(headers, 'Accept-Encoding');
  const negotiator = new Negotiator({
    headers: { 'accept-encoding': request.headers.get('accept-encoding') ?? 'identity' },
  });
  const preferred = Object.keys(CODINGS);
  const [coding] = negotiator.encodings([...preferred, 'identity'], { preferred });
  const ending = coding === 'br' || coding === 'gzip' ? CODINGS[coding] : undefined;
  const compressed = ending && bundle.get(`${name}.${ending}`);
  if (!compressed || coding === undefined) return new Response(content, { headers });
  headers.set('content-encoding', coding);
  return new Response(compressed, { headers });
}
