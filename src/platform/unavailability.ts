import { setTimeout as pause } from 'node:timers/promises';
import { describeUnavailability, rootMessageOf } from './database/failures.ts';
import { ServiceError } from './errors.ts';
import type { Events } from './events.ts';
import { type Finding, toFinding } from './findings.ts';
import { Reports } from './reports.ts';

const PAUSE_FIRST_MS = 100;
const PAUSE_MAX_MS = 5_000;

/** Why a start waits: what is unavailable. */
export interface Unavailability {
  /** The error that requests get meanwhile. */
  code: 'DATABASE_UNAVAILABLE' | 'OBJECTS_UNAVAILABLE';
  /** For operators. */
  finding: Finding;
}

const EVENTS = { DATABASE_UNAVAILABLE: 'database_awaited', OBJECTS_UNAVAILABLE: 'storage_awaited' } as const;

interface RetryOptions {
  events: Events;
  /** Ends the wait, which then throws the signal's reason. */
  signal: AbortSignal | undefined;
  /** Called after each failed attempt. */
  onUnavailability(unavailability: Unavailability): Promise<void>;
}

/**
 * Runs work that needs the database and the storage of uploaded files. While one of them is unavailable, repeats it
 * after pauses that double up to 5 s. Throws any other failure.
 */
export async function retryUntilAvailable<Result>(
  work: () => Promise<Result>,
  { events, signal, onUnavailability }: RetryOptions,
): Promise<Result> {
  const begun = performance.now();
  const reports = new Reports<string>();
  for (let attempt = 0; ; attempt += 1) {
    signal?.throwIfAborted();
    try {
      return await work();
    } catch (cause) {
      const unavailability = unavailabilityOf(cause);
      if (unavailability === undefined) throw cause;
      const { code, finding } = unavailability;
      const { message: reason } = finding;
      if (reports.noteIfDue(code, reason)) {
        events.emit({ event: EVENTS[code], reason, for_ms: Math.round(performance.now() - begun) });
      }
      await onUnavailability(unavailability);
    }
    // If the signal is aborted, the pause ends at once, and the next iteration throws.
    await pause(Math.min(PAUSE_MAX_MS, PAUSE_FIRST_MS * 2 ** attempt), undefined, { signal }).catch(() => {});
  }
}

function unavailabilityOf(cause: unknown): Unavailability | undefined {
  if (cause instanceof ServiceError && cause.code === 'OBJECTS_UNAVAILABLE') {
    const reason = `the object storage cannot be used: ${rootMessageOf(cause)}`;
    return { code: cause.code, finding: toFinding(cause.code, reason) };
  }
  const reason = describeUnavailability(cause);
  if (reason === undefined) return undefined;
  return { code: 'DATABASE_UNAVAILABLE', finding: toFinding('DATABASE_UNAVAILABLE', reason) };
}
