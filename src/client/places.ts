const PATH_LENGTH_MAX = 4_096;
/** A frame may have 16,384 bytes. What is not its path needs fewer than 1,024 of them. */
const PATH_BYTES_MAX = 15_360;
/** The service gives no longer ones. */
const INDEX_LENGTH_MAX = 64;

/** What is watched, and from where on. */
export interface Place {
  path: string;
  /** What has been seen of it; undefined: nothing. */
  index: string | undefined;
}

/**
 * Reads what somebody wants to watch. An index that is in the path counts where none is given beside it, and is taken out of
 * it; so is a fragment. What could never be an index has seen nothing. Throws TypeError for what is no path.
 */
export function readPlace(asked: string, watch_index: string | undefined): Place {
  const [, start = '', query] = /^([^?#]*)(?:\?([^#]*))?/.exec(asked) ?? [];
  const kept = query?.split('&').filter((member) => indexIn(member) === undefined) ?? [];
  const path = kept.length > 0 ? `${start}?${kept.join('&')}` : start;
  if (!path.startsWith('/') || path.length > PATH_LENGTH_MAX) throw new TypeError(`"${asked}" is not a path.`);
  const index = watch_index ?? indexIn(query ?? '');
  return { path, index: typeof index === 'string' && index.length <= INDEX_LENGTH_MAX ? index : undefined };
}

/** The first counts, as for the service. */
function indexIn(query: string): string | undefined {
  return new URLSearchParams(`?${query}`).get('watch_index') ?? undefined;
}

/** Whether a path leaves enough of a frame for what else is in it: some letters are long as JSON. */
export function fitsFrame(path: string): boolean {
  return new TextEncoder().encode(JSON.stringify(path)).length <= PATH_BYTES_MAX;
}
