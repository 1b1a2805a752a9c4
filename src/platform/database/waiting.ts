import { setTimeout as pause } from 'node:timers/promises';
import type { Events } from '../events.ts';
import { describeAbsence } from './failures.ts';

const PAUSE_FIRST_MS = 100;
const PAUSE_MAX_MS = 5_000;
/** A reason that stays the same is told again this seldom. */
const TELL_EVERY_MS = 10 * 60_000;

interface WaitingOptions {
  events: Events;
  /** Ends the wait; its reason is thrown. */
  signal: AbortSignal | undefined;
  /** Called after each attempt in vain. */
  onAway(reason: string): Promise<void>;
}

/**
 * Does work that needs the database. While the database is away the work is done again, after pauses that double up to 5 s.
 * Throws the first failure that does not go away by itself.
 */
export async function whenDatabaseAnswers<Result>(
  work: () => Promise<Result>,
  { events, signal, onAway }: WaitingOptions,
): Promise<Result> {
  const begun = performance.now();
  let told: { reason: string; at: number } | undefined;
  for (let attempt = 0; ; attempt += 1) {
    signal?.throwIfAborted();
    try {
      return await work();
    } catch (cause) {
      const reason = describeAbsence(cause);
      if (reason === undefined) throw cause;
      const now = performance.now();
      if (told?.reason !== reason || now - told.at >= TELL_EVERY_MS) {
        told = { reason, at: now };
        events.emit({ event: 'database_awaited', reason, for_ms: Math.round(now - begun) });
      }
      await onAway(reason);
    }
    // Given up, it ends at once, and the next turn throws.
    await pause(Math.min(PAUSE_MAX_MS, PAUSE_FIRST_MS * 2 ** attempt), undefined, { signal }).catch(() => {});
  }
}
