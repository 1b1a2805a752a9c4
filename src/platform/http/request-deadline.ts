import { ServiceError } from '../errors.ts';
import { Timeouts, type Unfinished } from '../timeouts.ts';

/** When a request ends without its answer: its client has gone, its time is over, or the service stops. */
export interface RequestDeadline {
  /** Aborted when that happens. Created on first use, because most requests need none. */
  readonly signal: AbortSignal;
  /** Whether it has happened. */
  readonly is_over: boolean;
  /** When the time of the request is over, in milliseconds of `performance.now()`. */
  readonly ends_at: number;
  /** Returns the error of a request that has ended without its answer. */
  toError(): ServiceError;
}

/** What the deadlines of all requests share. */
export interface DeadlineOptions {
  timeout_ms: number;
  timeouts: Timeouts<Deadline>;
  /** Aborted when the service stops. */
  stopping: AbortSignal;
}

export function createDeadlineOptions(timeout_ms: number, stopping: AbortSignal): DeadlineOptions {
  return { timeout_ms, timeouts: new Timeouts(timeout_ms, (deadline) => deadline.pass()), stopping };
}

/** The request that a deadline ends. */
interface TimedRequest {
  request: Request;
  /** Answers the request with an error. */
  fail(error: ServiceError): void;
}

/** The deadline of one request. Its time is unlimited until it is started. */
export class Deadline implements RequestDeadline {
  ends_at = Number.POSITIVE_INFINITY;
  readonly #timed: TimedRequest;
  readonly #options: DeadlineOptions;
  #unfinished: Unfinished<Deadline> | undefined;
  #abort: AbortController | undefined;
  #signal: AbortSignal | undefined;
  #has_passed = false;
  /** While it is held, the deadline does not pass. */
  #is_held = false;
  /** Whether the time is over, also while the deadline is held. */
  #is_due = false;

  constructor(timed: TimedRequest, options: DeadlineOptions) {
    this.#timed = timed;
    this.#options = options;
  }

  /** Lets the request fail with API_REQUEST_TIMEOUT when its time is over, unless the deadline is cancelled before. */
  start(): void {
    const { timeout_ms, timeouts } = this.#options;
    this.ends_at = performance.now() + timeout_ms;
    this.#unfinished = timeouts.add(this);
  }

  /** Stops the deadline, because the request is answered. */
  cancel(): void {
    if (this.#unfinished) this.#options.timeouts.finish(this.#unfinished);
  }

  /**
   * Keeps the deadline from passing until it is released: what the request waits for has a limit of its own, and the client
   * is late, not the service.
   */
  hold(): void {
    this.#is_held = true;
  }

  /** Lets the deadline pass if that was due meanwhile. */
  release(): void {
    this.#is_held = false;
    if (this.#is_due) this.pass();
  }

  /** Ends the request because its time is over. While the deadline is held, only notes that. */
  pass(): void {
    this.#is_due = true;
    if (this.#is_held) return;
    this.#has_passed = true;
    this.#abort?.abort();
    this.#timed.fail(this.toError());
  }

  toError(): ServiceError {
    const { timeout_ms, stopping } = this.#options;
    if (!this.#has_passed && stopping.aborted) return new ServiceError('SERVICE_STOPPING', {});
    if (!this.#has_passed && this.#timed.request.signal.aborted) return new ServiceError('API_CLIENT_GONE', {});
    return new ServiceError('API_REQUEST_TIMEOUT', { timeout_ms });
  }

  get signal(): AbortSignal {
    this.#abort ??= new AbortController();
    if (this.#has_passed) this.#abort.abort();
    this.#signal ??= AbortSignal.any([this.#timed.request.signal, this.#options.stopping, this.#abort.signal]);
    return this.#signal;
  }

  get is_over(): boolean {
    return this.#has_passed || this.#options.stopping.aborted || this.#timed.request.signal.aborted;
  }
}
