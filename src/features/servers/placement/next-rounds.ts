/** A timer may be early by less than this. */
const TIMER_MS = 1;

/** Requests further rounds of placement, each once. */
export class NextRounds {
  /** The time of a restart for which a round was requested. */
  #awaited_start = 0;
  /** When the next requested round is, in the time of `performance.now()`. */
  #next_round_at = 0;

  /** `placeAgainIn` has another round begin after a time. */
  constructor(private readonly placeAgainIn: (ms: number) => void) {}

  /** Requests a round when the next restart is due, unless that was done. */
  awaitStart(next_start: Date | undefined, now: Date): void {
    if (next_start === undefined || next_start.getTime() === this.#awaited_start) return;
    this.#awaited_start = next_start.getTime();
    this.placeAgainIn(this.#awaited_start - now.getTime() + TIMER_MS);
  }

  /**
   * Requests a round, unless an earlier one is requested, which will request the next. So the number of timers does not grow
   * with the servers that others take.
   */
  requestIn(ms: number): void {
    const now = performance.now();
    if (this.#next_round_at > now && this.#next_round_at < now + ms + TIMER_MS) return;
    this.#next_round_at = now + ms;
    this.placeAgainIn(ms + TIMER_MS);
  }
}
