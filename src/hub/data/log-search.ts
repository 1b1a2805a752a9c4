import { type Signal, signal } from '@preact/signals';
import { useEffect, useMemo } from 'preact/hooks';
import { type Answer, get, type Parameters } from './api.ts';
import { useUnmountSignal } from './unmount-signal.ts';

const SEARCH = '/games/{game_id}/environments/{environment_id}/servers/{server_id}/log-search';
/** The time from the last key to the start of a search. */
const TYPING_MS = 200;

export type LogStream = 'std_out' | 'std_err';
type Line = Answer<typeof SEARCH, 'get'>['lines'][number];

/** A search from the end of a stream back to its beginning. */
export interface Search {
  /** What was found so far, oldest first. */
  lines: Line[];
  /** The number of the earliest line that was searched so far. */
  from_line: number;
  /** The end of the stream when the search began; undefined until the service has answered. */
  end_line: number | undefined;
  is_done: boolean;
  error?: Error;
}

const NOT_BEGUN: Search = { lines: [], from_line: 0, end_line: undefined, is_done: false };

interface Searched {
  parameters: Parameters<typeof SEARCH>;
  stream: LogStream;
  /** Empty for no search. */
  text: string;
  /** The search ends when it has found this many lines. */
  lines_max: number;
}

/** Searches a whole stream of a log on the service, page by page, while the component is shown. */
export function useLogSearch({ parameters, stream, text, lines_max }: Searched): Signal<Search> {
  const key = JSON.stringify([parameters, stream, text]);
  const known = useMemo(() => signal(NOT_BEGUN), [key]);
  const unmounted = useUnmountSignal(key);
  useEffect(() => {
    if (text === '') return undefined;
    const searchOn = async () => {
      for (let found = NOT_BEGUN; !unmounted.aborted && !found.is_done; known.value = found) {
        const { end_line, from_line, lines } = found;
        const before_line = end_line === undefined ? undefined : String(from_line);
        const page = await get(SEARCH, parameters, { stream, search_text: text, before_line }, unmounted);
        if (unmounted.aborted) return;
        const all = [...page.lines, ...lines];
        const is_done = page.from_line === 0 || all.length >= lines_max;
        found = { lines: all, from_line: page.from_line, end_line: end_line ?? page.end_line, is_done };
      }
    };
    const timer = setTimeout(() => {
      searchOn().catch((error: Error) => {
        known.value = { ...known.value, is_done: true, error };
      });
    }, TYPING_MS);
    return () => clearTimeout(timer);
  }, [key]);
  return known;
}
