import { ServiceError } from '../../platform/errors.ts';

/** How long a server may take to begin its answer once it has the body. A short answer must also end by then. */
const ANSWER_WITHIN_MS = 120_000;
/** How long a body may pause. Each byte makes up for a millisecond of earlier pauses. */
const BODY_PAUSE_MAX_MS = 30_000;
const BODY_BYTES_PER_SECOND_MIN = 1_000;

export interface AnswerDeadlineOptions {
  /** Aborted when the client disconnects. */
  client: AbortSignal;
  server_id: string;
  has_body: boolean;
  /** How long the body may pause. */
  body_pause_max_ms?: number | undefined;
}

/** Ends a request whose body comes too slowly, or whose answer does not begin in time. */
export class AnswerDeadline implements Disposable {
  readonly #ending = new AbortController();
  readonly #client: AbortSignal;
  readonly #server_id: string;
  readonly #body_pause_max_ms: number;
  readonly #end = () => this.#ending.abort();
  #ends_at: number;
  #timer: Timer;
  #is_body_sent: boolean;
  #failure: ServiceError | undefined;

  constructor({ client, server_id, has_body, body_pause_max_ms = BODY_PAUSE_MAX_MS }: AnswerDeadlineOptions) {
    this.#client = client;
    this.#server_id = server_id;
    this.#is_body_sent = !has_body;
    this.#body_pause_max_ms = body_pause_max_ms;
    const within_ms = has_body ? body_pause_max_ms : ANSWER_WITHIN_MS;
    this.#ends_at = performance.now() + within_ms;
    this.#timer = setTimeout(() => this.#check(), within_ms);
    if (client.aborted) this.#end();
    else client.addEventListener('abort', this.#end, { once: true });
  }

  /** Aborted when the time is over, or the client disconnects. */
  get signal(): AbortSignal {
    return this.#ending.signal;
  }

  /** Why the request was ended; undefined if its time is not over. */
  get failure(): ServiceError | undefined {
    return this.#failure;
  }

  /** Notes that the server is sent bytes of the body. */
  noteBody(bytes: number): void {
    const latest = performance.now() + this.#body_pause_max_ms;
    this.#ends_at = Math.min(latest, this.#ends_at + bytes / (BODY_BYTES_PER_SECOND_MIN / 1_000));
  }

  noteBodySent(): void {
    this.#is_body_sent = true;
    this.#ends_at = performance.now() + ANSWER_WITHIN_MS;
  }

  /** Stops the clock, because the answer has begun or the request has failed. */
  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
    this.#client.removeEventListener('abort', this.#end);
  }

  #check(): void {
    const left_ms = this.#ends_at - performance.now();
    if (left_ms > 0) {
      this.#timer = setTimeout(() => this.#check(), left_ms);
      return;
    }
    this.#failure = this.#is_body_sent
      ? new ServiceError('GATEWAY_SERVER_SILENT', { server_id: this.#server_id, seconds: ANSWER_WITHIN_MS / 1_000 })
      : new ServiceError('GATEWAY_BODY_SLOW', { bytes: BODY_BYTES_PER_SECOND_MIN });
    this.#ending.abort();
  }
}
