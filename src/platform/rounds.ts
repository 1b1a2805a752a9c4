import { ServiceError } from './errors.ts';

interface RoundsOptions<Item, Result> {
  /** How many are done together at the most, and how many may wait for that. */
  round_max: number;
  waiting_max: number;
  /** Does all of it in one go. Gives a result for each, in their order. */
  work(items: Item[]): Promise<Result[]>;
}

interface Waiting<Item, Result> {
  item: Item;
  resolve(result: Result): void;
  reject(error: unknown): void;
}

/**
 * Does many small things together: what comes while a round is under way waits for the next one. There is no timer, so
 * what comes alone is done at once. Throws DATABASE_BUSY when too many wait.
 */
export function createRounds<Item, Result>({ round_max, waiting_max, work }: RoundsOptions<Item, Result>) {
  let waiting: Waiting<Item, Result>[] = [];
  let is_running = false;

  async function run(): Promise<void> {
    if (is_running) return;
    is_running = true;
    while (waiting.length > 0) {
      const round = waiting.slice(0, round_max);
      waiting = waiting.slice(round_max);
      try {
        const results = await work(round.map(({ item }) => item));
        for (const [index, { resolve }] of round.entries()) resolve(results[index] as Result);
      } catch (error) {
        for (const { reject } of round) reject(error);
      }
    }
    is_running = false;
  }

  return async (item: Item): Promise<Result> => {
    if (waiting.length >= waiting_max) throw new ServiceError('DATABASE_BUSY', {});
    const { promise, resolve, reject } = Promise.withResolvers<Result>();
    waiting.push({ item, resolve, reject });
    // Never fails: each item is answered by its own promise.
    void run();
    return await promise;
  };
}
