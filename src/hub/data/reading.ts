import { type Signal, signal } from '@preact/signals';
import { useEffect, useMemo } from 'preact/hooks';
import { type Answer, get, type Parameters, type Query, type Readable } from './api.ts';
import { isFailureOfService } from './request.ts';
import { useUnmountSignal } from './unmount-signal.ts';

/** The pause after a read that the service could not answer. */
export const READ_AGAIN_AFTER_MS = 5_000;

/** A path that is read, not watched. */
export interface Reading<Body> {
  /** The latest answer; undefined before the first one. It stays when a later attempt fails. */
  answer: Signal<Body | undefined>;
  /** Why the latest attempt failed; undefined if it did not. */
  failure: Signal<Error | undefined>;
  /** Reads it again, for example after a change. */
  again(): Promise<void>;
}

interface ReadingOptions {
  query?: Query;
  /** Reads again at this interval, while the tab is visible. */
  every_ms?: number;
}

/** Reads a path that cannot be watched, when the component is shown; again after a failure of the service. */
export function useReading<Path extends Readable>(
  path: Path,
  parameters: Parameters<Path>,
  { query, every_ms }: ReadingOptions = {},
): Reading<Answer<Path, 'get'>> {
  const key = JSON.stringify([parameters, query]);
  const unmounted = useUnmountSignal(`${path} ${key}`);
  const { start, stop, ...reading } = useMemo(() => {
    const answer = signal<Answer<Path, 'get'> | undefined>(undefined);
    const failure = signal<Error | undefined>(undefined);
    let [begun, answered] = [0, 0];
    let timer: ReturnType<typeof setTimeout> | undefined;
    const readNow = async () => {
      clearTimeout(timer);
      begun += 1;
      const attempt = begun;
      const outcome = await get(path, parameters, query, unmounted).catch((error: Error) => error);
      // The answer to a later attempt may come first. It is the newer one.
      if (unmounted.aborted || attempt < answered) return;
      answered = attempt;
      const failed = outcome instanceof Error ? outcome : undefined;
      failure.value = failed;
      if (!(outcome instanceof Error)) answer.value = outcome;
      const pause_ms = every_ms ?? (isFailureOfService(failed) ? READ_AGAIN_AFTER_MS : undefined);
      if (pause_ms !== undefined) readAfter(pause_ms);
    };
    const readAfter = (pause_ms: number) => {
      clearTimeout(timer);
      timer = setTimeout(() => {
        if (document.visibilityState === 'visible') void readNow();
        else readAfter(pause_ms);
      }, pause_ms);
    };
    return { answer, failure, again: readNow, start: () => void readNow(), stop: () => clearTimeout(timer) };
  }, [path, key]);
  useEffect(() => {
    start();
    return stop;
  }, [path, key]);
  return reading;
}
