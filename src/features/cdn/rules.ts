import mime from 'mime';
import Negotiator from 'negotiator';
import parseRange from 'range-parser';
import type { ByteRange } from '../../platform/objects/objects.ts';
import { isHeaderSafe } from '../uploads/uploads.ts';
import { type CdnRoute, matchesGlob, TRANSPORT_HEADERS } from '../versions/versions.ts';

const COMPRESSED_FROM_BYTES = 1_024;
const ROUTES_APPLIED_MAX = 10;

/** In order of preference. */
const ENCODINGS = ['zstd', 'br', 'gzip'] as const;
export type Encoding = (typeof ENCODINGS)[number];

interface RequestedFile {
  content_id: string;
  content_type: string;
  content_length: number;
  /** Whether it was uploaded compressed, as the version's headers say. It is not compressed again. */
  is_encoded: boolean;
}

/** How a request for a file is answered. A whole file is sent as it is if it cannot be compressed at the moment. */
export type FileAnswer =
  | { kind: 'unchanged'; etag: string }
  | { kind: 'unsatisfiable' }
  | { kind: 'part'; range: ByteRange }
  | { kind: 'whole'; encoding: Encoding | undefined };

/** Chooses the answer to a GET or HEAD by the headers of the request. */
export function chooseAnswer(
  { method, headers }: Pick<Request, 'method' | 'headers'>,
  file: RequestedFile,
): FileAnswer {
  // Only a GET asks for a range (RFC 9110, 14.2).
  const range_header = method === 'GET' ? headers.get('range') : null;
  const is_original = range_header !== null || file.is_encoded;
  const encoding = is_original ? undefined : chooseEncoding(headers.get('accept-encoding'), file);
  const seen = headers.get('if-none-match');
  const etag = etagOf(file.content_id);
  const seen_etag = [etagOf(file.content_id, encoding), etag].find((one) => matchesEtag(seen, one));
  if (seen_etag !== undefined) return { kind: 'unchanged', etag: seen_etag };
  const if_range = headers.get('if-range');
  const is_other_version = if_range !== null && if_range !== etag;
  const range = range_header === null || is_other_version ? undefined : readRange(range_header, file.content_length);
  if (range === 'unsatisfiable') return { kind: 'unsatisfiable' };
  return range ? { kind: 'part', range } : { kind: 'whole', encoding };
}

/** Returns the entity tag of a file in an encoding. */
export function etagOf(content_id: string, encoding?: Encoding): string {
  return `"${content_id}${encoding ? `.${encoding}` : ''}"`;
}

/** Compares entity tags weakly (RFC 9110, 13.1.2). */
function matchesEtag(if_none_match: string | null, etag: string): boolean {
  if (if_none_match === null) return false;
  return (
    if_none_match.trim() === '*' || if_none_match.split(',').some((tag) => tag.trim().replace(/^W\//, '') === etag)
  );
}

/** Returns the requested range of bytes; undefined if it is malformed or asks for several, so that the whole file is sent. */
function readRange(header: string, content_length: number): ByteRange | 'unsatisfiable' | undefined {
  const ranges = parseRange(content_length, header);
  if (ranges === -1) return 'unsatisfiable';
  if (ranges === -2 || ranges.type !== 'bytes' || ranges.length !== 1) return undefined;
  return ranges[0];
}

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
 * an announced type that no header can carry, which earlier releases stored. The case of types and of names of parameters
 * does not matter (RFC 9110, 8.3.1).
 */
export function contentTypeOf(path: string, announced: string | null): string {
  const is_usable = announced !== null && announced !== '' && isHeaderSafe(announced);
  const type = (is_usable ? announced : undefined) ?? mime.getType(path) ?? 'application/octet-stream';
  const is_text = /^(text\/|application\/(javascript|json|xml)|image\/svg)/i.test(type);
  return is_text && !/;\s*charset\s*=/i.test(type) ? `${type}; charset=utf-8` : type;
}

export function isHtml(content_type: string): boolean {
  return /^(text\/html|application\/xhtml\+xml)/i.test(content_type);
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
  return /^(text\/|application\/(javascript|json|xml|wasm)|\w+\/[^;]*\+(json|xml)|font\/(ttf|otf))/i.test(content_type);
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
