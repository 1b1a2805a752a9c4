/** Something that has a time, and is told when that is over. */
interface Timed {
  /** Milliseconds of `performance.now()`. */
  readonly deadline: number;
  finish(): void;
}

/** Ends what takes too long. All have the same time: one timer serves them, in the order in which they were added. */
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

  /** Ends all of them now. */
  finish(): void {
    clearTimeout(this.#timer);
    for (const one of this.#waiting) one.finish();
  }

  #wake(after_ms: number): ReturnType<typeof setTimeout> {
    const timer = setTimeout(() => this.#finishDue(), after_ms);
    // What is waited for keeps the process alive, not this.
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
