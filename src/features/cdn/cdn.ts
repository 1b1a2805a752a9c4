import parseRange from 'range-parser';
import type { NamespaceRow, Namespaces } from '../namespaces/namespaces.ts';
import type { SiteFile, Sites } from '../sites/sites.ts';
import { topics } from '../topics.ts';
import type { Uploads } from '../uploads/uploads.ts';
import type { Versions } from '../versions/versions.ts';
import { createAccess } from './access.ts';
import { compress } from './compression.ts';
import type { Hosts } from './hosts.ts';
import { chooseEncoding, contentTypeOf, customHeaders, filePathOf, isHtml } from './rules.ts';

const NEVER_KEPT = 'no-cache, no-store';
/** Kept, and asked for again each time: a version that is taken back is taken back at once. */
const ASKED_AGAIN = 'public, max-age=0, must-revalidate';

interface CdnDependencies {
  hosts: Hosts;
  namespaces: Namespaces;
  versions: Versions;
  sites: Sites;
  uploads: Uploads;
}

export type Cdn = ReturnType<typeof createCdn>;

/** Shows sites, each under host names of its own, so that nothing of a site runs where the API is. */
export function createCdn({ hosts, namespaces, versions, sites, uploads }: CdnDependencies) {
  const access = createAccess(namespaces);

  async function show(request: Request, namespace: NamespaceRow): Promise<Response> {
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      return plain(405, 'A site is only read.', { allow: 'GET, HEAD' });
    }
    if (!(await access.admits(namespace, request.headers.get('authorization')))) {
      return plain(401, 'This site asks for a user and password.', {
        'www-authenticate': 'Basic realm="site", charset="UTF-8"',
      });
    }
    const { cdn } = (await versions.get(namespace)).config;
    const site = cdn?.site_id === undefined ? undefined : await sites.find(namespace.game_id, cdn.site_id);
    const path = filePathOf(new URL(request.url).pathname);
    const file = site && path !== undefined ? (await sites.files(site)).get(path) : undefined;
    if (!site || path === undefined || !file) return plain(404, 'There is no such file on this site.');
    return await send(request, {
      path,
      file,
      upload_id: site.upload_id,
      custom: customHeaders(path, cdn?.routes ?? []),
    });
  }

  async function send(
    request: Request,
    { path, file, upload_id, custom }: { path: string; file: SiteFile; upload_id: string; custom: [string, string][] },
  ): Promise<Response> {
    const content_type = contentTypeOf(path, file.content_type);
    const { content_length, file_number } = file;
    const encoding = request.headers.has('range')
      ? undefined
      : chooseEncoding(request.headers.get('accept-encoding'), { content_type, content_length });
    // Files of a complete upload never change: where one lies says which bytes it has.
    const etag = `"${upload_id}.${file_number}${encoding ? `.${encoding}` : ''}"`;
    const headers = new Headers({
      'content-type': content_type,
      'cache-control': isHtml(content_type) ? NEVER_KEPT : ASKED_AGAIN,
      'x-content-type-options': 'nosniff',
    });
    for (const [name, value] of custom) headers.set(name, value);
    headers.set('etag', etag);
    headers.append('vary', 'Accept-Encoding');
    headers.set('accept-ranges', 'bytes');
    if (isSeen(request.headers.get('if-none-match'), etag)) return new Response(null, { status: 304, headers });

    const range = readRange(request, content_length, etag);
    if (range === 'unsatisfiable') {
      headers.set('content-range', `bytes */${content_length}`);
      return new Response(null, { status: 416, headers });
    }
    if (encoding) headers.set('content-encoding', encoding);
    else headers.set('content-length', String(range ? range.end - range.start + 1 : content_length));
    if (range) headers.set('content-range', `bytes ${range.start}-${range.end}/${content_length}`);
    const status = range ? 206 : 200;
    if (request.method === 'HEAD') return new Response(null, { status, headers });
    const content = await uploads.read(upload_id, file_number, range);
    return new Response(encoding ? compress(content, encoding) : content, {
      status,
      headers,
    });
  }

  return {
    /** The answer of the site whose host a request names; undefined when it is the API that is asked. */
    async respond(request: Request): Promise<Response | undefined> {
      const { is_site, namespace_id } = await hosts.look(new URL(request.url).hostname);
      if (!is_site) return undefined;
      const namespace = namespace_id === undefined ? undefined : await namespaces.find(namespace_id);
      return namespace ? await show(request, namespace) : plain(404, 'There is no site under this name.');
    },
    /** The namespace whose pages need no token, by the origin that they come from (specification: tokenless). */
    async findByOrigin(origin: string): Promise<string | undefined> {
      if (!URL.canParse(origin)) return undefined;
      const { namespace_id } = await hosts.look(new URL(origin).hostname);
      const namespace = namespace_id === undefined ? undefined : await namespaces.find(namespace_id);
      return namespace?.enable_domain_public_auth ? namespace.namespace_id : undefined;
    },
    /** Where it is told that this is so no more. */
    newsOf: (origin: string, namespace_id: string) => [
      topics.siteHost(new URL(origin).hostname),
      topics.namespace(namespace_id),
    ],
  };
}

/** RFC 9110, 13.1.2; weak comparison. */
function isSeen(if_none_match: string | null, etag: string): boolean {
  if (if_none_match === null) return false;
  return (
    if_none_match.trim() === '*' || if_none_match.split(',').some((tag) => tag.trim().replace(/^W\//, '') === etag)
  );
}

/** One range of bytes, both ends included; undefined for the whole: none, several, or one of another state of the file. */
function readRange(
  request: Request,
  content_length: number,
  etag: string,
): { start: number; end: number } | 'unsatisfiable' | undefined {
  const header = request.headers.get('range');
  const if_range = request.headers.get('if-range');
  if (header === null || (if_range !== null && if_range !== etag)) return undefined;
  const ranges = parseRange(content_length, header);
  if (ranges === -1) return 'unsatisfiable';
  if (ranges === -2 || ranges.type !== 'bytes' || ranges.length !== 1) return undefined;
  return ranges[0];
}

function plain(status: number, text: string, headers: Record<string, string> = {}): Response {
  return new Response(`${text}\n`, {
    status,
    headers: { 'content-type': 'text/plain; charset=utf-8', 'cache-control': 'no-store', ...headers },
  });
}
