import { Registry } from './registry.ts';

interface Timed<Work> {
  work: Work;
  /** In milliseconds of `performance.now()`. */
  ends_at: number;
  /** Returns whether it was unfinished. */
  finish(): boolean;
}

/** Limits the time of pieces of work. All have the same timeout, so one timer serves them in the order of arrival. */
export class Timeouts<Work> {
  readonly #timeout_ms: number;
  readonly #onTimeout: (work: Work) => void;
  readonly #unfinished = new Registry<Timed<Work>>();
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(timeout_ms: number, onTimeout: (work: Work) => void) {
    this.#timeout_ms = timeout_ms;
    this.#onTimeout = onTimeout;
  }

  /** Limits the time of some work. Returns the function to call when it is finished. */
  add(work: Work): () => void {
    const timed: Timed<Work> = { work, ends_at: performance.now() + this.#timeout_ms, finish: () => false };
    timed.finish = this.#unfinished.add(timed);
    this.#timer ??= this.#wake(this.#timeout_ms);
    return timed.finish;
  }

  /** Lets all work time out now. */
  expireAll(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    for (const timed of this.#unfinished.list()) this.#expire(timed);
  }

  #wake(after_ms: number): ReturnType<typeof setTimeout> {
    const timer = setTimeout(() => this.#expireDue(), after_ms);
    // The timer must not keep the process alive.
    timer.unref();
    return timer;
  }

  #expireDue(): void {
    const now = performance.now();
    const next = () => this.#unfinished.first();
    try {
      for (let first = next(); first && first.ends_at <= now; first = next()) this.#expire(first);
    } finally {
      // Also after a callback that throws: all other work still needs its timeout.
      clearTimeout(this.#timer);
      const left = next();
      this.#timer = left && this.#wake(Math.max(0, left.ends_at - now));
    }
  }

  #expire({ work, finish }: Timed<Work>): void {
    if (finish()) this.#onTimeout(work);
  }
}
