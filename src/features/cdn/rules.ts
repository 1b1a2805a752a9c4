import mime from 'mime';
import Negotiator from 'negotiator';
import { isHeaderSafe } from '../uploads/uploads.ts';
import { type CdnRoute, matchesGlob, TRANSPORT_HEADERS } from '../versions/versions.ts';

const COMPRESSED_FROM_BYTES = 1_024;
const ROUTES_APPLIED_MAX = 10;

/** In order of preference. */
const ENCODINGS = ['zstd', 'br', 'gzip'] as const;
export type Encoding = (typeof ENCODINGS)[number];

/** Returns the path of the requested file; `/` at the end means index.html. Undefined if it is not a valid path. */
export function filePathOf(pathname: string): string | undefined {
  try {
    const path = decodeURIComponent(pathname).slice(1);
    return path === '' || path.endsWith('/') ? `${path}index.html` : path;
  } catch {
    return undefined;
  }
}

/**
 * Returns the announced type of a file, or else the type of its name. Text is UTF-8 unless announced otherwise. Ignores
 * an announced type that no header can carry, which earlier releases stored.
 */
export function contentTypeOf(path: string, announced: string | null): string {
  const is_usable = announced !== null && announced !== '' && isHeaderSafe(announced);
  const type = (is_usable ? announced : undefined) ?? mime.getType(path) ?? 'application/octet-stream';
  const is_text = /^(text\/|application\/(javascript|json|xml)|image\/svg)/.test(type);
  return is_text && !type.includes('charset') ? `${type}; charset=utf-8` : type;
}

export function isHtml(content_type: string): boolean {
  return /^(text\/html|application\/xhtml\+xml)/.test(content_type);
}

/** Chooses the encoding of a file; undefined to send it uncompressed. */
export function chooseEncoding(
  accept_encoding: string | null,
  { content_type, content_length }: { content_type: string; content_length: number },
): Encoding | undefined {
  if (accept_encoding === null || content_length < COMPRESSED_FROM_BYTES || !isCompressible(content_type))
    return undefined;
  const negotiator = new Negotiator({ headers: { 'accept-encoding': accept_encoding } });
  const [first] = negotiator.encodings([...ENCODINGS, 'identity'], { preferred: [...ENCODINGS] });
  return ENCODINGS.find((encoding) => encoding === first);
}

function isCompressible(content_type: string): boolean {
  return /^(text\/|application\/(javascript|json|xml|wasm|.*\+(json|xml))|image\/svg\+xml|font\/(ttf|otf))/.test(
    content_type,
  );
}

/**
 * Returns a version's custom headers for a file: those of the ten matching routes of highest priority. The highest comes last,
 * because later values replace earlier ones.
 */
export function customHeaders(path: string, routes: readonly CdnRoute[]): [string, string][] {
  return routes
    .filter(({ glob }) => matchesGlob(glob, path))
    .toSorted((one, other) => other.priority - one.priority)
    .slice(0, ROUTES_APPLIED_MAX)
    .reverse()
    .flatMap(({ middlewares }) => middlewares.flatMap(({ kind }) => kind.custom_headers?.headers ?? []))
    .filter(({ name }) => !TRANSPORT_HEADERS.test(name))
    .map(({ name, value }) => [name, value]);
}
