import type { RequestDeadline } from '../../../../platform/http/request-deadline.ts';
import { type ReceiptDraft, UNKEPT_DRAFT } from '../receipts/receipt-draft.ts';
import type { Seat } from '../seat.ts';
import type { SeatRequest } from './seat-requests.ts';

/** What the rounds need of a request, besides what it asks for. */
export interface RequestOptions {
  draft?: ReceiptDraft;
  /** Once it is over, no round decides the request any more. */
  deadline?: Pick<RequestDeadline, 'is_over' | 'toError'>;
}

/** A request that waits for its seat, or for an error. */
export class PendingRequest {
  readonly request: SeatRequest;
  readonly draft: ReceiptDraft;
  readonly deadline: RequestOptions['deadline'];
  readonly #seat = Promise.withResolvers<Seat>();
  readonly #onAnswer: () => void;
  /** Number of rounds that left it without an answer. */
  attempts = 0;
  /** Whether an earlier round found its client over its limit, perhaps only because of other requests of that round. */
  was_over_limit = false;
  /** Whether an earlier round could not create its lobby, because the namespace had its maximum of lobbies. */
  had_too_many_lobbies = false;
  is_answered = false;

  constructor(request: SeatRequest, { draft = UNKEPT_DRAFT, deadline }: RequestOptions, onAnswer: () => void) {
    this.request = request;
    this.draft = draft;
    this.deadline = deadline;
    this.#onAnswer = onAnswer;
  }

  get seat(): Promise<Seat> {
    return this.#seat.promise;
  }

  resolve(seat: Seat): void {
    if (this.#end()) this.#seat.resolve(seat);
  }

  reject(error: unknown): void {
    if (this.#end()) this.#seat.reject(error);
  }

  /** Returns false if the request has been answered before. */
  #end(): boolean {
    if (this.is_answered) return false;
    this.is_answered = true;
    this.#onAnswer();
    return true;
  }
}
