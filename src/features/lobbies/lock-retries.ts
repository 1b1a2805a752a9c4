import { setTimeout as pause } from 'node:timers/promises';
import { ServiceError } from '../../platform/errors.ts';

const PAUSE_FIRST_MS = 20;

/** Repeats a change while its lobby is locked, after pauses that double. Throws DATABASE_BUSY if it stays locked. */
export async function retryWhileLocked<Result>(
  change: () => Promise<Result | 'locked'>,
  locked_max_ms: number,
): Promise<Result> {
  const give_up_at = performance.now() + locked_max_ms;
  for (let pause_ms = PAUSE_FIRST_MS; ; pause_ms *= 2) {
    const result = await change();
    if (result !== 'locked') return result;
    if (performance.now() + pause_ms > give_up_at) throw new ServiceError('DATABASE_BUSY', {});
    await pause(pause_ms);
  }
}
