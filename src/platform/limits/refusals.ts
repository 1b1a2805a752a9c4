import type { Clock } from '../clock.ts';
import { MINUTE_MS } from '../units.ts';

/** How many requests a limit has refused. */
export interface RefusedRequests {
  limit: string;
  count: number;
}

const MINUTES = 60;
export const LISTED_MAX = 10;

/** Counts the requests that limits have refused within the last hour. */
export class Refusals {
  readonly #clock: Clock;
  /** The counts of minutes, by the name of the limit. */
  readonly #counts = new Map<string, Map<number, number>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  add(limit: string): void {
    const minutes = this.#counts.get(limit) ?? new Map<number, number>();
    this.#counts.set(limit, minutes);
    const minute = this.#minute();
    minutes.set(minute, (minutes.get(minute) ?? 0) + 1);
    if (minutes.size > MINUTES) this.#forgetOld(minutes);
  }

  /** Returns the limits that have refused most. */
  list(): RefusedRequests[] {
    const listed: RefusedRequests[] = [];
    for (const [limit, minutes] of this.#counts) {
      this.#forgetOld(minutes);
      if (minutes.size === 0) this.#counts.delete(limit);
      else listed.push({ limit, count: [...minutes.values()].reduce((sum, one) => sum + one, 0) });
    }
    return listed.sort((one, other) => other.count - one.count).slice(0, LISTED_MAX);
  }

  #forgetOld(minutes: Map<number, number>): void {
    const oldest = this.#minute() - MINUTES;
    for (const minute of minutes.keys()) if (minute <= oldest) minutes.delete(minute);
  }

  #minute(): number {
    return Math.floor(this.#clock.now().getTime() / MINUTE_MS);
  }
}
