const PATH_LENGTH_MAX = 4_096;
/** A frame may have 16,384 bytes, of which everything but the path needs fewer than 1,024. */
const PATH_BYTES_MAX = 15_360;
/** The service issues no longer indexes. */
const INDEX_LENGTH_MAX = 64;

/** A path to watch, and the latest index seen of it. */
export interface Position {
  path: string;
  /** The index of the latest body; undefined before the first one. */
  index: string | undefined;
}

/**
 * Reads a path, and removes a fragment and a `watch_index` from it. The argument `watch_index` wins over the one in the
 * path. An index that is too long is ignored. Throws TypeError for an invalid path.
 */
export function readPosition(asked: string, watch_index: string | undefined): Position {
  const [, start = '', query] = /^([^?#]*)(?:\?([^#]*))?/.exec(asked) ?? [];
  const kept = query?.split('&').filter((member) => indexIn(member) === undefined) ?? [];
  const path = kept.length > 0 ? `${start}?${kept.join('&')}` : start;
  if (!path.startsWith('/') || path.length > PATH_LENGTH_MAX)
    throw new TypeError(`"${asked}" is not a path: begin it with /, and use at most ${PATH_LENGTH_MAX} characters.`);
  const index = watch_index ?? indexIn(query ?? '');
  return { path, index: typeof index === 'string' && index.length <= INDEX_LENGTH_MAX ? index : undefined };
}

/** Returns the first index, as the service does. */
function indexIn(query: string): string | undefined {
  return new URLSearchParams(`?${query}`).get('watch_index') ?? undefined;
}

/** Returns whether a path fits into a frame. Some characters need several bytes in JSON. */
export function fitsFrame(path: string): boolean {
  return new TextEncoder().encode(JSON.stringify(path)).length <= PATH_BYTES_MAX;
}
