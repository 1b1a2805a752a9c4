import { type Signal, signal } from '@preact/signals';
import { useEffect, useMemo } from 'preact/hooks';
import { type Answer, get, type Parameters, type Readable } from './api.ts';

/** What was read once; undefined until then. */
export interface Reading<Body> {
  read: Signal<Body | Error | undefined>;
  /** Reads it again, for example after a change. */
  again(): Promise<void>;
}

/** Reads a path that cannot be watched, when the component is shown. */
export function useReading<Path extends Readable>(
  path: Path,
  parameters: Parameters<Path>,
): Reading<Answer<Path, 'get'>> {
  const key = JSON.stringify(parameters);
  const read = useMemo(() => signal<Answer<Path, 'get'> | Error | undefined>(undefined), [path, key]);
  const again = async () => {
    read.value = await get(path, parameters).catch((error: Error) => error);
  };
  useEffect(() => void again(), [path, key]);
  return { read, again };
}
