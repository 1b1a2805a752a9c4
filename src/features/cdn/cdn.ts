import { LRUCache } from 'lru-cache';
import { addVary } from '../../platform/http/answers.ts';
import type { Site, WebRequest } from '../../platform/http/site.ts';
import type { Transfers } from '../../platform/http/transfers.ts';
import { inEachMinute } from '../../platform/limits/limit.ts';
import type { MaybePromise } from '../../platform/maybe-promise.ts';
import type { ByteRange } from '../../platform/objects/objects.ts';
import type { Games } from '../games/games.ts';
import type { NamespaceRow, Namespaces } from '../namespaces/namespaces.ts';
import type { SiteFile, Sites } from '../sites/sites.ts';
import { topics } from '../topics.ts';
import { contentIdOf, type Uploads } from '../uploads/uploads.ts';
import type { CdnRoute, Versions } from '../versions/versions.ts';
import { createAccess } from './access.ts';
import type { CompressedFiles } from './compressed-files.ts';
import { createHosts, hostnameOf } from './hosts.ts';
import { chooseAnswer, contentTypeOf, customHeaders, etagOf, filePathOf, isHtml } from './rules.ts';

const NEVER_KEPT = 'no-cache, no-store';
/** Caches revalidate each time, so that a rollback of a version applies at once. */
const REVALIDATED = 'public, max-age=0, must-revalidate';

/**
 * Limits requests per site and address, which many players may share. Counts in this process, which serves the file.
 */
const REQUESTS = inEachMinute('site', 6_000, { counted: 'here' });
const REMEMBERED_HEADERS_MAX = 10_000;

interface CdnSettings {
  sites_domain: string;
}

export interface CdnDependencies extends CdnSettings {
  games: Games;
  namespaces: Namespaces;
  versions: Versions;
  sites: Sites;
  uploads: Uploads;
  transfers: Transfers;
  compressed_files: CompressedFiles;
}

/** A file of a site, and the headers that its version has for it. */
interface SentFile {
  path: string;
  file: SiteFile;
  upload_id: string;
  custom_headers: [string, string][];
}

export type Cdn = ReturnType<typeof createCdn>;

/** Creates the CDN, which serves sites. Each site has its own host names, so that none shares the API's origin. */
export function createCdn(dependencies: CdnDependencies) {
  const { namespaces, versions, sites, uploads, transfers, compressed_files } = dependencies;
  const hosts = createHosts(dependencies);
  const access = createAccess(namespaces);
  // Entries stay correct, because a version never changes.
  const remembered_headers = new LRUCache<string, [string, string][]>({ max: REMEMBERED_HEADERS_MAX });

  /** Returns the custom headers of a file. Matches each path once, because globs can be costly. */
  function headersOf(version_id: string, path: string, routes: readonly CdnRoute[]): [string, string][] {
    const key = `${version_id} ${path}`;
    const known = remembered_headers.get(key);
    if (known) return known;
    const headers = customHeaders(path, routes);
    remembered_headers.set(key, headers);
    return headers;
  }

  async function show(web_request: WebRequest, namespace: NamespaceRow): Promise<Response> {
    const { request } = web_request;
    await web_request.count(REQUESTS, namespace.namespace_id);
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      return textAnswer(405, 'A site can only be read: send GET or HEAD.', { allow: 'GET, HEAD' });
    }
    if (!(await access.maySee(namespace, web_request))) {
      return textAnswer(401, 'This site requires a user and password.', {
        'www-authenticate': 'Basic realm="site", charset="UTF-8"',
      });
    }
    const { cdn } = (await versions.get(namespace)).config;
    const site = cdn?.site_id === undefined ? undefined : await sites.find(namespace.game_id, cdn.site_id);
    const path = filePathOf(new URL(request.url).pathname);
    const file = site && path !== undefined ? (await sites.files(site)).get(path) : undefined;
    if (!site || path === undefined || !file) return textAnswer(404, 'There is no such file on this site.');
    return await send(web_request, {
      path,
      file,
      upload_id: site.upload_id,
      custom_headers: headersOf(namespace.version_id, path, cdn?.routes ?? []),
    });
  }

  async function send(
    { request, address }: WebRequest,
    { path, file, upload_id, custom_headers }: SentFile,
  ): Promise<Response> {
    const content_type = contentTypeOf(path, file.content_type);
    const headers = headersFor(content_type, custom_headers);
    const { content_length, file_number } = file;
    // An unchanged file of a later site has the same objects, so caches keep it.
    const content_id = contentIdOf(file);
    const is_encoded = headers.has('content-encoding');
    const answer = chooseAnswer(request, { content_id, content_type, content_length, is_encoded });
    if (answer.kind === 'unchanged') {
      headers.set('etag', answer.etag);
      return new Response(null, { status: 304, headers });
    }

    const read = (range?: ByteRange) => uploads.read(upload_id, file_number, range);
    if (answer.kind === 'whole' && answer.encoding) {
      const original = { upload_id, content_id, content_length, read };
      const compressed = await compressed_files.find(original, answer.encoding);
      if (compressed) {
        headers.set('etag', etagOf(content_id, answer.encoding));
        headers.set('content-encoding', answer.encoding);
        headers.set('content-length', String(compressed.content_length));
        return new Response(request.method === 'HEAD' ? null : Bun.file(compressed.path), { headers });
      }
    }
    headers.set('etag', etagOf(content_id));
    if (answer.kind === 'unsatisfiable') {
      headers.set('content-range', `bytes */${content_length}`);
      return new Response(null, { status: 416, headers });
    }
    const range = answer.kind === 'part' ? answer.range : undefined;
    headers.set('content-length', String(range ? range.end - range.start + 1 : content_length));
    if (range) headers.set('content-range', `bytes ${range.start}-${range.end}/${content_length}`);
    const status = range ? 206 : 200;
    if (request.method === 'HEAD') return new Response(null, { status, headers });
    const content = await transfers.download(address, request.signal, () => read(range));
    return new Response(content, { status, headers });
  }

  return {
    /** Returns the site at the host of a URL; undefined if the host is the API's. */
    async find(url: string, countLookup: () => MaybePromise<void>): Promise<Site | undefined> {
      const shown = await hosts.resolve(hostnameOf(url), countLookup);
      if (shown.is === 'api') return undefined;
      const namespace = shown.is === 'site' ? await namespaces.find(shown.namespace_id) : undefined;
      if (!namespace) return { respond: async () => textAnswer(404, 'There is no site under this name.') };
      return { respond: (web_request) => show(web_request, namespace) };
    },
    /**
     * Returns the namespace that requests from a page may use without a token, by the page's origin (specification:
     * tokenless authentication).
     */
    async findByOrigin(origin: string, countLookup: () => MaybePromise<void>): Promise<string | undefined> {
      if (!URL.canParse(origin)) return undefined;
      const shown = await hosts.resolve(hostnameOf(origin), countLookup);
      const namespace = shown.is === 'site' ? await namespaces.find(shown.namespace_id) : undefined;
      return namespace?.enable_domain_public_auth ? namespace.namespace_id : undefined;
    },
    /** Returns the topics to watch for changes of the result of `findByOrigin`. */
    topicsOf: (origin: string, namespace_id: string) => [
      topics.siteHost(hostnameOf(origin)),
      topics.namespace(namespace_id),
    ],
    [Symbol.asyncDispose]: () => compressed_files[Symbol.asyncDispose](),
  };
}

/** Returns the headers of every answer for a file. */
function headersFor(content_type: string, custom_headers: readonly [string, string][]): Headers {
  const headers = new Headers({
    'content-type': content_type,
    'cache-control': isHtml(content_type) ? NEVER_KEPT : REVALIDATED,
    'x-content-type-options': 'nosniff',
  });
  for (const [name, value] of custom_headers) {
    if (name.toLowerCase() === 'vary') addVary(headers, value);
    else headers.set(name, value);
  }
  addVary(headers, 'Accept-Encoding');
  headers.set('accept-ranges', 'bytes');
  return headers;
}

function textAnswer(status: number, text: string, headers: Record<string, string> = {}): Response {
  return new Response(`${text}\n`, {
    status,
    headers: { 'content-type': 'text/plain; charset=utf-8', 'cache-control': 'no-store', ...headers },
  });
}
