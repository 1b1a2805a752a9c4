/** Something with a deadline; `finish` is called when that has passed. */
interface Timed {
  /** Milliseconds of `performance.now()`. */
  readonly deadline: number;
  finish(): void;
}

/** Finishes what takes too long. All share one timeout, so one timer serves them in the order in which they were added. */
export class Timeouts<Waiting extends Timed> {
  readonly timeout_ms: number;
  readonly #waiting = new Set<Waiting>();
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(timeout_ms: number) {
    this.timeout_ms = timeout_ms;
  }

  add(one: Waiting): void {
    this.#waiting.add(one);
    this.#timer ??= this.#wake(this.timeout_ms);
  }

  delete(one: Waiting): void {
    this.#waiting.delete(one);
  }

  /** Finishes all of them now. */
  finish(): void {
    clearTimeout(this.#timer);
    for (const one of this.#waiting) one.finish();
  }

  #wake(after_ms: number): ReturnType<typeof setTimeout> {
    const timer = setTimeout(() => this.#finishDue(), after_ms);
    // The timer must not keep the process alive.
    timer.unref();
    return timer;
  }

  #finishDue(): void {
    const now = performance.now();
    this.#timer = undefined;
    for (const one of this.#waiting) {
      if (one.deadline > now) {
        this.#timer = this.#wake(one.deadline - now);
        return;
      }
      this.#waiting.delete(one);
      one.finish();
    }
  }
}
