import { ServiceError } from './errors.ts';
import { coalesceRuns } from './runs.ts';

/** Rounds up to this size are not split, because each round has a cost of its own. */
const SMALL_ROUND = 16;

/**
 * Returns how many waiting items the next round takes: half of all that are under way, including those of the last
 * round, whose callers are being answered while the next round commits. If a round took all, nothing would wait when it
 * commits, and rounds of callers that ask again at once would alternate between all and one (docs/decisions/0022).
 */
export function sizeOfRound({
  waiting,
  last,
  round_max,
}: {
  waiting: number;
  last: number;
  round_max: number;
}): number {
  return Math.min(round_max, Math.max(SMALL_ROUND, Math.ceil((waiting + last) / 2)));
}

interface RoundQueueOptions<Item> {
  /** Maximum number of items in a round. */
  round_max: number;
  /** Processes a round. It answers all items itself, also when it fails, so it never rejects. */
  work(round: Item[]): Promise<void>;
}

/**
 * Items that are processed together, in one round at a time. An item that comes during a round waits for the next one, or
 * for a later one if many wait. There is no timer, so a single item is processed at once. The caller limits how many wait.
 */
export class RoundQueue<Item> {
  readonly #options: RoundQueueOptions<Item>;
  readonly #run = coalesceRuns(() => this.#runAll());
  #waiting: Item[] = [];

  constructor(options: RoundQueueOptions<Item>) {
    this.#options = options;
  }

  /** The number of items that wait for a round. */
  get length(): number {
    return this.#waiting.length;
  }

  add(item: Item): void {
    this.#waiting.push(item);
    // Never rejects, because no round does.
    void this.#run();
  }

  /** Puts items of an earlier round in front of all that wait. */
  addFirst(items: Item[]): void {
    if (items.length === 0) return;
    this.#waiting = [...items, ...this.#waiting];
    void this.#run();
  }

  async #runAll(): Promise<void> {
    const { round_max, work } = this.#options;
    let last = 0;
    while (this.#waiting.length > 0) {
      const round = this.#waiting.splice(0, sizeOfRound({ waiting: this.#waiting.length, last, round_max }));
      last = round.length;
      await work(round);
    }
  }
}

interface RoundsOptions<Item, Result> extends Omit<RoundQueueOptions<Item>, 'work'> {
  /** Maximum number of items that wait for a round. */
  waiting_max: number;
  /** Processes all items at once. Returns a result for each, in their order. */
  work(items: Item[]): Promise<Result[]>;
}

interface Waiting<Item, Result> {
  item: Item;
  resolve(result: Result): void;
  reject(error: unknown): void;
}

/** Returns a function that processes an item in a round with others. Throws DATABASE_BUSY if too many wait. */
export function createRounds<Item, Result>({ work, waiting_max, round_max }: RoundsOptions<Item, Result>) {
  const queue = new RoundQueue<Waiting<Item, Result>>({
    round_max,
    async work(round) {
      try {
        const results = await work(round.map(({ item }) => item));
        for (const [index, { resolve }] of round.entries()) resolve(results[index] as Result);
      } catch (error) {
        for (const { reject } of round) reject(error);
      }
    },
  });

  return async (item: Item): Promise<Result> => {
    if (queue.length >= waiting_max) throw new ServiceError('DATABASE_BUSY', {});
    const { promise, resolve, reject } = Promise.withResolvers<Result>();
    queue.add({ item, resolve, reject });
    return await promise;
  };
}
