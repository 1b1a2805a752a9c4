import { Timeouts } from '../timeouts.ts';

/**
 * Waits for changes until its timeout, or until its signal is aborted. One object listens to both, because ten thousand
 * waiters may exist at a time.
 */
export class Waiter implements EventListenerObject {
  is_over: boolean;
  readonly #signal: AbortSignal;
  #has_changed = false;
  #wake: (() => void) | undefined;

  constructor(signal: AbortSignal) {
    this.#signal = signal;
    this.is_over = signal.aborted;
    signal.addEventListener('abort', this);
  }

  onChange(): void {
    this.#has_changed = true;
    this.#wake?.();
  }

  /** Called when the signal is aborted. */
  handleEvent(): void {
    this.finish();
  }

  /** Ends the wait. */
  finish(): void {
    this.is_over = true;
    this.#wake?.();
  }

  /** Waits for a change since the last call, or for the end. */
  async next(): Promise<void> {
    if (!this.#has_changed && !this.is_over) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
      this.#wake = undefined;
    }
    this.#has_changed = false;
  }

  dispose(): void {
    this.#signal.removeEventListener('abort', this);
  }
}

/** Waiters that share one timeout. */
export class Waiters {
  readonly #timeouts: Timeouts<Waiter>;
  #is_released = false;

  constructor(timeout_ms: number) {
    this.#timeouts = new Timeouts(timeout_ms, (waiter) => waiter.finish());
  }

  /** Adds a waiter, until it is removed. */
  add(signal: AbortSignal): { waiter: Waiter; remove(): void } {
    const waiter = new Waiter(signal);
    if (this.#is_released) waiter.finish();
    const unfinished = this.#timeouts.add(waiter);
    return {
      waiter,
      remove: () => {
        waiter.dispose();
        this.#timeouts.finish(unfinished);
      },
    };
  }

  /** Ends every wait, now and from now on. */
  release(): void {
    this.#is_released = true;
    this.#timeouts.expireAll();
  }
}
