import { setTimeout as pause } from 'node:timers/promises';

/** Time for which a request waits until its build is unpacked and packed. Proxies close a silent connection after 60 s. */
const OPEN_WITHIN_MS = 45_000;

/** The outcome of a request for a build. */
export type BuildOpening<Build> =
  | { is: 'open'; build: Build }
  | { is: 'absent' }
  /** The build is still being opened, and a later request gets it. */
  | { is: 'late' }
  | { is: 'failed' };

interface OpeningOptions {
  within_ms?: number | undefined;
  /** Reports why a build cannot be opened, also after the request was answered. */
  onFailed?: ((cause: unknown) => void) | undefined;
}

/** Waits for a build to be opened, but not longer than a request may wait. */
export async function awaitOpening<Build>(
  opening: Promise<Build | undefined>,
  { within_ms = OPEN_WITHIN_MS, onFailed }: OpeningOptions,
): Promise<BuildOpening<Build>> {
  const waiting = new AbortController();
  const opened = opening.then(
    (build) => (build === undefined ? ({ is: 'absent' } as const) : ({ is: 'open', build } as const)),
    (cause: unknown) => {
      onFailed?.(cause);
      return { is: 'failed' } as const;
    },
  );
  const late = pause(within_ms, { is: 'late' } as const, { signal: waiting.signal }).catch(
    () => ({ is: 'late' }) as const,
  );
  try {
    return await Promise.race([opened, late]);
  } finally {
    waiting.abort();
  }
}
