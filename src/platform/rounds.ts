import { ServiceError } from './errors.ts';
import { coalesceRuns } from './runs.ts';

/** Rounds up to this size are not split, because each round has a cost of its own. */
const SMALL_ROUND = 16;

/**
 * Returns how many waiting items the next round takes: half of all that are under way, including those of the last
 * round, whose callers are being answered while the next round commits. A round of all would leave nothing to do
 * meanwhile: callers that ask again at once would then alternate between rounds of all and of one (docs/decisions/0022).
 */
export function sizeOfRound(waiting: number, last: number, round_max: number): number {
  return Math.min(round_max, Math.max(SMALL_ROUND, Math.ceil((waiting + last) / 2)));
}

interface RoundsOptions<Item, Result> {
  /** Maximum number of items in a round. */
  round_max: number;
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

/**
 * Returns a function that processes an item together with others, in one round at a time. An item that comes during a
 * round waits for the next one, or for a later one if many wait. There is no timer, so a single item is processed at once.
 * Throws DATABASE_BUSY if too many wait.
 */
export function createRounds<Item, Result>({ round_max, waiting_max, work }: RoundsOptions<Item, Result>) {
  let waiting: Waiting<Item, Result>[] = [];

  const run = coalesceRuns(async () => {
    let last = 0;
    while (waiting.length > 0) {
      const round = waiting.slice(0, sizeOfRound(waiting.length, last, round_max));
      waiting = waiting.slice(round.length);
      last = round.length;
      try {
        const results = await work(round.map(({ item }) => item));
        for (const [index, { resolve }] of round.entries()) resolve(results[index] as Result);
      } catch (error) {
        for (const { reject } of round) reject(error);
      }
    }
  });

  return async (item: Item): Promise<Result> => {
    if (waiting.length >= waiting_max) throw new ServiceError('DATABASE_BUSY', {});
    const { promise, resolve, reject } = Promise.withResolvers<Result>();
    waiting.push({ item, resolve, reject });
    // Never fails: a failure rejects the promises of its round.
    void run();
    return await promise;
  };
}
