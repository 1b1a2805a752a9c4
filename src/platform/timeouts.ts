/** Limits the time of pieces of work. All have the same timeout, so one timer serves them in the order of arrival. */
export class Timeouts<Work> {
  readonly #timeout_ms: number;
  readonly #onTimeout: (work: Work) => void;
  /** When each piece of work times out, in milliseconds of `performance.now()`. */
  readonly #deadlines = new Map<Work, number>();
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(timeout_ms: number, onTimeout: (work: Work) => void) {
    this.#timeout_ms = timeout_ms;
    this.#onTimeout = onTimeout;
  }

  add(work: Work): void {
    this.#deadlines.set(work, performance.now() + this.#timeout_ms);
    this.#timer ??= this.#wake(this.#timeout_ms);
  }

  delete(work: Work): void {
    this.#deadlines.delete(work);
  }

  /** Lets all work time out now. */
  finish(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const unfinished = [...this.#deadlines.keys()];
    this.#deadlines.clear();
    for (const work of unfinished) this.#onTimeout(work);
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
    for (const [work, deadline] of this.#deadlines) {
      if (deadline > now) {
        this.#timer = this.#wake(deadline - now);
        return;
      }
      this.#deadlines.delete(work);
      this.#onTimeout(work);
    }
  }
}
