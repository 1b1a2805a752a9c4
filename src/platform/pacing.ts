export { forEachAtOnce } from '../shared/at-once.ts';

/** Long enough to make progress, and too short to delay other requests noticeably. */
const SLICE_MS = 5;

let slice_ends_at = 0;
const paused: (() => void)[] = [];

/**
 * Long work awaits this between its steps. All such work together yields to the event loop after every 5 ms, and each
 * turn of the event loop resumes the work that has waited for longest.
 */
export async function pace(): Promise<void> {
  if (performance.now() < slice_ends_at) return;
  await new Promise<void>((resolve) => {
    if (paused.push(resolve) === 1) setImmediate(resumeNext);
  });
}

function resumeNext(): void {
  slice_ends_at = performance.now() + SLICE_MS;
  paused.shift()?.();
  if (paused.length > 0) setImmediate(resumeNext);
}

/**
 * Returns a function that transfers await before each chunk. Whenever they have passed on this many bytes together, the
 * event loop gets its turn before the next chunk, so that many transfers do not delay other requests.
 */
export function createByteShare(bytes_each_turn: number): (chunk_bytes: number) => Promise<void> {
  let bytes_left = bytes_each_turn;
  let next_turn: Promise<void> | undefined;

  async function waitForTurn(): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve));
    next_turn = undefined;
    bytes_left = bytes_each_turn;
  }

  return async (chunk_bytes) => {
    while (bytes_left <= 0) {
      next_turn ??= waitForTurn();
      await next_turn;
    }
    bytes_left -= chunk_bytes;
  };
}
