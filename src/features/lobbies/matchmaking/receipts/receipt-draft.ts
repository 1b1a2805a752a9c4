import type { Seat } from '../seat.ts';
import type { ReceiptRow } from './receipts-store.ts';
import type { Candidate, Receipt } from './receipts-wire.ts';

type Stage = keyof Receipt['stages_ms'];

/** The request that a receipt is about. */
export type ReceiptSubject = Pick<Receipt, 'ray_id' | 'kind' | 'version_id' | 'request'> & { namespace_id: string };

/** What a request in progress records for its receipt. */
export interface ReceiptDraft {
  /** False if the request gets no receipt. Then nothing is recorded. */
  readonly is_kept: boolean;
  /** Records the time at which a stage was first reached. */
  recordStage(stage: Exclude<Stage, 'decided' | 'answered'>): void;
  /** Records that a round begins to decide the request. Only the time of the last one is kept. */
  recordRound(): void;
  /** Records the candidates of a round, in place of those of the previous round. */
  recordCandidates(candidates: Candidate[]): void;
  /** Records the decision of the captcha check or of verification. */
  recordDecision(decision: Pick<Receipt, 'captcha' | 'verification'>): void;
  /** Records the version and the searched regions. A verification for another version no longer counts. */
  recordSearch(version_id: string, regions: string[] | undefined): void;
  /** Records the committed seat. */
  recordSeat(seat: Seat): void;
}

/** The draft of a request that gets no receipt. */
export const UNKEPT_DRAFT: ReceiptDraft = {
  is_kept: false,
  recordStage() {},
  recordRound() {},
  recordCandidates() {},
  recordDecision() {},
  recordSearch() {},
  recordSeat() {},
};

/** Collects the receipt of a request in progress. */
export class KeptDraft implements ReceiptDraft {
  readonly is_kept = true;
  readonly #subject: ReceiptSubject;
  readonly #create_ts: Date;
  readonly #started = performance.now();
  readonly #stages: Partial<Record<Stage, number>> = {};
  #version_id: string;
  #regions: string[] | undefined;
  #candidates: Candidate[] = [];
  #rounds = 0;
  #decisions: Pick<Receipt, 'captcha' | 'verification'> = {};
  #seat: Seat | undefined;

  constructor(subject: ReceiptSubject, create_ts: Date) {
    this.#subject = subject;
    this.#create_ts = create_ts;
    this.#version_id = subject.version_id;
    this.#regions = subject.request.regions;
  }

  recordStage(stage: Exclude<Stage, 'decided' | 'answered'>): void {
    this.#stages[stage] ??= this.#elapsed();
  }

  recordRound(): void {
    this.#stages.decided = this.#elapsed();
    this.#rounds += 1;
  }

  recordCandidates(candidates: Candidate[]): void {
    this.#candidates = candidates;
  }

  recordDecision(decision: Pick<Receipt, 'captcha' | 'verification'>): void {
    Object.assign(this.#decisions, decision);
  }

  recordSearch(version_id: string, regions: string[] | undefined): void {
    if (version_id !== this.#version_id) {
      delete this.#decisions.verification;
      delete this.#stages.verified;
    }
    this.#version_id = version_id;
    this.#regions = regions;
  }

  recordSeat(seat: Seat): void {
    this.recordStage('seated');
    this.#seat = seat;
  }

  /** Returns the receipt of a request that was answered with its seat, or with an error. */
  finish(error?: { code: string }): ReceiptRow {
    const { namespace_id, ...subject } = this.#subject;
    const regions = this.#regions === undefined ? {} : { regions: this.#regions };
    const receipt: Receipt = {
      ...subject,
      version_id: this.#version_id,
      request: { ...subject.request, ...regions },
      create_ts: this.#create_ts.toISOString(),
      considered: this.#candidates,
      ...this.#decisions,
      rounds: this.#rounds,
      outcome: error ?? { lobby_id: this.#seat?.lobby_id, is_new: this.#seat?.is_new },
      stages_ms: { ...this.#stages, answered: this.#elapsed() },
    };
    return { ray_id: subject.ray_id, namespace_id, create_ts: this.#create_ts, receipt };
  }

  #elapsed(): number {
    return Math.round((performance.now() - this.#started) * 100) / 100;
  }
}
