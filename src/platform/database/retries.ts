import { isWorthRetrying } from './failures.ts';

const ATTEMPTS_MAX = 5;

/** Runs a statement or a transaction, and repeats it after a deadlock or a serialization failure, which undid it. */
export async function retryConflicts<Result>(run: () => Promise<Result>): Promise<Result> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await run();
    } catch (error) {
      if (attempt === ATTEMPTS_MAX || !isWorthRetrying(error)) throw error;
    }
  }
}
