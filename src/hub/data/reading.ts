import { type Signal, signal } from '@preact/signals';
import { useEffect, useMemo } from 'preact/hooks';
import { type Answer, get, type Parameters, type Query, type Readable } from './api.ts';
import { useUnmountSignal } from './unmount-signal.ts';

/** A path that is read, not watched. */
export interface Reading<Body> {
  /** The latest answer, or why there is none; undefined before the first one. */
  read: Signal<Body | Error | undefined>;
  /** Reads it again, for example after a change. */
  again(): Promise<void>;
}

interface ReadingOptions {
  query?: Query;
  /** Reads again at this interval, while the tab is visible. */
  every_ms?: number;
}

/** Reads a path that cannot be watched, when the component is shown. */
export function useReading<Path extends Readable>(
  path: Path,
  parameters: Parameters<Path>,
  { query, every_ms }: ReadingOptions = {},
): Reading<Answer<Path, 'get'>> {
  const key = JSON.stringify([parameters, query]);
  const { read, attempts } = useMemo(
    () => ({
      read: signal<Answer<Path, 'get'> | Error | undefined>(undefined),
      attempts: { begun: 0, answered: 0 },
    }),
    [path, key],
  );
  const unmounted = useUnmountSignal(`${path} ${key}`);
  const readNow = async () => {
    attempts.begun += 1;
    const attempt = attempts.begun;
    const answer = await get(path, parameters, query, unmounted).catch((error: Error) => error);
    // The answer to a later attempt may come first. It is the newer one.
    if (unmounted.aborted || attempt < attempts.answered) return;
    attempts.answered = attempt;
    read.value = answer;
  };
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const readOn = async () => {
      await readNow();
      while (every_ms !== undefined && !unmounted.aborted) {
        await new Promise((resolve) => {
          timer = setTimeout(resolve, every_ms);
        });
        if (document.visibilityState === 'visible') await readNow();
      }
    };
    void readOn();
    return () => clearTimeout(timer);
  }, [path, key]);
  return { read, again: readNow };
}
