import { Timeouts } from '../timeouts.ts';

/**
 * Something to wait for: it rings when there is news, and is over at its time or when whoever waits has gone. Ten thousand
 * of them wait at one time, so it is one object, which is itself what listens.
 */
export class Alarm implements EventListenerObject {
  is_over: boolean;
  /** Milliseconds of `performance.now()`. */
  readonly deadline: number;
  readonly #signal: AbortSignal;
  #has_rung = false;
  #wake: (() => void) | undefined;

  constructor(signal: AbortSignal, timeout_ms: number) {
    this.#signal = signal;
    this.is_over = signal.aborted;
    this.deadline = performance.now() + timeout_ms;
    signal.addEventListener('abort', this);
  }

  /** There is news. */
  onNews(): void {
    this.#has_rung = true;
    this.#wake?.();
  }

  /** Whoever waits has gone. */
  handleEvent(): void {
    this.finish();
  }

  /** The time is over. */
  finish(): void {
    this.is_over = true;
    this.#wake?.();
  }

  /** Until it rings, or has rung since the last time, or is over. */
  async next(): Promise<void> {
    if (!this.#has_rung && !this.is_over) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
      this.#wake = undefined;
    }
    this.#has_rung = false;
  }

  end(): void {
    this.#signal.removeEventListener('abort', this);
  }
}

/** Alarms that all have the same time. */
export class Alarms {
  readonly #timeouts: Timeouts<Alarm>;
  #is_released = false;

  constructor(timeout_ms: number) {
    this.#timeouts = new Timeouts(timeout_ms);
  }

  set(signal: AbortSignal): Alarm {
    const alarm = new Alarm(signal, this.#timeouts.timeout_ms);
    if (this.#is_released) alarm.finish();
    this.#timeouts.add(alarm);
    return alarm;
  }

  end(alarm: Alarm): void {
    alarm.end();
    this.#timeouts.delete(alarm);
  }

  /** Nobody waits any longer, from now on. */
  release(): void {
    this.#is_released = true;
    this.#timeouts.finish();
  }
}
