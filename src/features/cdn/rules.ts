import mime from 'mime';
import Negotiator from 'negotiator';
import { isSendable } from '../uploads/uploads.ts';
import { type CdnRoute, matchesGlob } from '../versions/versions.ts';

const COMPRESSED_FROM_BYTES = 1_024;
const ROUTES_APPLIED_MAX = 10;

/** In the order in which we would rather have them. */
const ENCODINGS = ['zstd', 'br', 'gzip'] as const;
export type Encoding = (typeof ENCODINGS)[number];

/** The path of the file that a request asks for: `/` at the end stands for index.html. Undefined when it is no path. */
export function filePathOf(pathname: string): string | undefined {
  try {
    const path = decodeURIComponent(pathname).slice(1);
    return path === '' || path.endsWith('/') ? `${path}index.html` : path;
  } catch {
    return undefined;
  }
}

/**
 * The type that was announced with the file, or else the type of its name. Text is UTF-8 unless it says otherwise. An
 * announced type that no header can hold does not count: versions before this rule stored such types.
 */
export function contentTypeOf(path: string, announced: string | null): string {
  const is_usable = announced !== null && announced !== '' && isSendable(announced);
  const type = (is_usable ? announced : undefined) ?? mime.getType(path) ?? 'application/octet-stream';
  const is_text = /^(text\/|application\/(javascript|json|xml)|image\/svg)/.test(type);
  return is_text && !type.includes('charset') ? `${type}; charset=utf-8` : type;
}

export function isHtml(content_type: string): boolean {
  return /^(text\/html|application\/xhtml\+xml)/.test(content_type);
}

/** The encoding to send a file in; undefined to send it as it is. */
export function chooseEncoding(
  accept_encoding: string | null,
  { content_type, content_length }: { content_type: string; content_length: number },
): Encoding | undefined {
  if (accept_encoding === null || content_length < COMPRESSED_FROM_BYTES || !isCompressible(content_type))
    return undefined;
  const negotiator = new Negotiator({ headers: { 'accept-encoding': accept_encoding } });
  const [first] = negotiator.encodings([...ENCODINGS, 'identity'], { preferred: [...ENCODINGS] });
  return ENCODINGS.find((encoding) => encoding === first) ?? undefined;
}

function isCompressible(content_type: string): boolean {
  return /^(text\/|application\/(javascript|json|xml|wasm|.*\+(json|xml))|image\/svg\+xml|font\/(ttf|otf))/.test(
    content_type,
  );
}

/** Headers that say how a message travels are ours to set. */
const OURS =
  /^(connection|content-(encoding|length|range)|date|keep-alive|set-cookie|te|trailer|transfer-encoding|upgrade)$/i;

/** The custom headers of a version for a file: of the routes whose glob it matches, by priority, at most ten of them. */
export function customHeaders(path: string, routes: readonly CdnRoute[]): [string, string][] {
  return routes
    .filter(({ glob }) => matchesGlob(glob, path))
    .toSorted((one, other) => other.priority - one.priority)
    .slice(0, ROUTES_APPLIED_MAX)
    .reverse()
    .flatMap(({ middlewares }) => middlewares.flatMap(({ kind }) => kind.custom_headers?.headers ?? []))
    .filter(({ name }) => !OURS.test(name))
    .map(({ name, value }) => [name, value]);
}
