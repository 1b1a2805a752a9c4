import { ServiceError } from '../errors.ts';
import { Timeouts } from '../timeouts.ts';

/** For how long somebody waits for an answer. */
export interface Patience {
  /** Aborted when the client has gone, the time of the request is over or the service stops. Made for those who ask for it. */
  readonly signal: AbortSignal;
  /** Whether that is so now. */
  readonly is_over: boolean;
  /** When the time of the request is over, as `performance.now()` counts. */
  readonly deadline: number;
}

/** The time that one request has. */
export class TimeLimit implements Patience {
  readonly #request: Request;
  readonly #stopping: AbortSignal;
  readonly #timeout_ms: number;
  #giveUp: ((error: ServiceError) => void) | undefined;
  #abort: AbortController | undefined;
  #signal: AbortSignal | undefined;
  readonly deadline: number;
  #is_late = false;

  constructor(request: Request, stopping: AbortSignal, timeout_ms: number) {
    this.#request = request;
    this.#stopping = stopping;
    this.#timeout_ms = timeout_ms;
    this.deadline = performance.now() + timeout_ms;
  }

  /** What the work gives; fails when the time is over before. */
  race<Answer>(work: Promise<Answer>): Promise<Answer> {
    return new Promise((resolve, reject) => {
      this.#giveUp = reject;
      work.then(resolve, reject);
    });
  }

  get signal(): AbortSignal {
    this.#abort ??= new AbortController();
    if (this.#is_late) this.#abort.abort();
    this.#signal ??= AbortSignal.any([this.#request.signal, this.#stopping, this.#abort.signal]);
    return this.#signal;
  }

  get is_over(): boolean {
    return this.#is_late || this.#stopping.aborted || this.#request.signal.aborted;
  }

  /** The time is over. */
  finish(): void {
    this.#is_late = true;
    this.#abort?.abort();
    this.#giveUp?.(new ServiceError('API_REQUEST_TIMEOUT', { timeout_ms: this.#timeout_ms }));
  }
}

/** For a request that only its client ends. */
export function untilGone({ signal }: Request): Patience {
  return {
    signal,
    deadline: Number.POSITIVE_INFINITY,
    get is_over() {
      return signal.aborted;
    },
  };
}

/** Ends requests that take too long. */
export class TimeLimits {
  readonly #timeouts: Timeouts<TimeLimit>;
  readonly #stopping: AbortSignal;

  constructor(timeout_ms: number, stopping: AbortSignal) {
    this.#timeouts = new Timeouts(timeout_ms);
    this.#stopping = stopping;
  }

  /** Does the work of a request. Throws API_REQUEST_TIMEOUT when it takes longer than it may. */
  run<Answer>(request: Request, work: (limit: TimeLimit) => Promise<Answer>): Promise<Answer> {
    const limit = new TimeLimit(request, this.#stopping, this.#timeouts.timeout_ms);
    this.#timeouts.add(limit);
    const done = work(limit);
    const forget = () => this.#timeouts.delete(limit);
    done.then(forget, forget);
    return limit.race(done);
  }

  /** For a request that may take as long as it likes. */
  none(request: Request): Patience {
    return new TimeLimit(request, this.#stopping, Number.POSITIVE_INFINITY);
  }
}
