import { useEffect, useMemo } from 'preact/hooks';

/** Returns an AbortSignal that is aborted when the component unmounts or its key changes. */
export function useUnmountSignal(key?: string): AbortSignal {
  const leaving = useMemo(() => new AbortController(), [key]);
  useEffect(() => () => leaving.abort(), [leaving]);
  return leaving.signal;
}
