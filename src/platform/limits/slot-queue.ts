import { BulkheadRejectedError, TaskCancelledError } from 'cockatiel';
import { Slots } from './slots.ts';

interface SlotQueueOptions {
  /** How much work may run at one time. */
  at_once: number;
  /** How much work may wait. */
  waiting_max: number;
}

interface Waiter {
  account: string;
  start(): void;
}

/**
 * Runs work in slots that accounts share, by the rule of `Slots`. Work that may have no slot yet waits, without delaying
 * that of other accounts.
 */
export class SlotQueue {
  readonly #slots: Slots;
  readonly #waiting_max: number;
  readonly #waiting = new Set<Waiter>();

  constructor({ at_once, waiting_max }: SlotQueueOptions) {
    this.#slots = new Slots(at_once);
    this.#waiting_max = waiting_max;
  }

  /** Throws BulkheadRejectedError if too much work waits, and TaskCancelledError if the signal ends the wait. */
  async run<Result>(account: string, work: () => Promise<Result>, signal?: AbortSignal): Promise<Result> {
    if (this.#slots.hasRoomFor(account)) this.#slots.take(account);
    else await this.#wait(account, signal);
    try {
      return await work();
    } finally {
      this.#slots.free(account);
      this.#startWaiting();
    }
  }

  /** Waits until a slot was taken for the account. */
  async #wait(account: string, signal: AbortSignal | undefined): Promise<void> {
    if (this.#waiting.size >= this.#waiting_max) throw new BulkheadRejectedError(this.#slots.max, this.#waiting_max);
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const waiter = { account, start: resolve };
    const cancel = () => {
      // Once it has been started, the work itself sees the signal.
      if (this.#waiting.delete(waiter)) reject(new TaskCancelledError());
    };
    this.#waiting.add(waiter);
    if (signal?.aborted) cancel();
    signal?.addEventListener('abort', cancel, { once: true });
    try {
      await promise;
    } finally {
      signal?.removeEventListener('abort', cancel);
    }
  }

  #startWaiting(): void {
    for (const waiter of this.#waiting) {
      if (!this.#slots.hasRoomFor(waiter.account)) continue;
      this.#waiting.delete(waiter);
      this.#slots.take(waiter.account);
      waiter.start();
    }
  }
}
