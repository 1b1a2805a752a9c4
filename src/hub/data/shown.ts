import { useEffect, useMemo } from 'preact/hooks';

/** Returns a signal that is aborted once the component is left, or shows something with another key. */
export function useShown(key?: string): AbortSignal {
  const leaving = useMemo(() => new AbortController(), [key]);
  useEffect(() => () => leaving.abort(), [leaving]);
  return leaving.signal;
}
