import { Registry, type Slot } from './registry.ts';

interface Timed<Work> {
  work: Work;
  /** In milliseconds of `performance.now()`. */
  ends_at: number;
}

/** A piece of work that has not ended. Pass it to `finish` when it has. */
export type Unfinished<Work> = Slot<Timed<Work>>;

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

  /** Lets a piece of work time out, unless it is finished before. */
  add(work: Work): Unfinished<Work> {
    this.#timer ??= this.#wake(this.#timeout_ms);
    return this.#unfinished.add({ work, ends_at: performance.now() + this.#timeout_ms });
  }

  /** Ends the limit for work that is finished. Does nothing if the work has timed out. */
  finish(unfinished: Unfinished<Work>): void {
    this.#unfinished.remove(unfinished);
  }

  /** Lets all work time out now. */
  expireAll(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    for (const unfinished of this.#unfinished.slots()) this.#expire(unfinished);
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
      for (let first = next(); first && first.item.ends_at <= now; first = next()) this.#expire(first);
    } finally {
      // Also after a callback that throws: all other work still needs its timeout.
      clearTimeout(this.#timer);
      const left = next();
      this.#timer = left && this.#wake(Math.max(0, left.item.ends_at - now));
    }
  }

  #expire(unfinished: Unfinished<Work>): void {
    if (this.#unfinished.remove(unfinished)) this.#onTimeout(unfinished.item.work);
  }
}

/** Waits for work, but only until the signal is aborted. Then throws the failure, by default the reason of the signal. */
export async function orAborted<Result>(
  work: PromiseLike<Result>,
  signal: AbortSignal,
  toFailure: () => unknown = () => signal.reason,
): Promise<Result> {
  const { promise, reject } = Promise.withResolvers<never>();
  const abort = () => reject(toFailure());
  if (signal.aborted) abort();
  signal.addEventListener('abort', abort, { once: true });
  try {
    return await Promise.race([promise, work]);
  } finally {
    signal.removeEventListener('abort', abort);
  }
}
