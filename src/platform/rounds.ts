import { ServiceError } from './errors.ts';

/** Rounds this small are not made smaller: what each costs by itself would be paid twice. */
const SMALL_ROUND = 16;

/**
 * How many of those who wait are done in the next round: half of all who are under way, the last round's too, who are being
 * answered while the next one is committed. Taking all would leave nothing to do in between, and those who ask again as soon
 * as they are answered would come in rounds of all and of one in turn, each half idle (docs/decisions/0022).
 */
export function sizeOfRound(waiting: number, last: number, round_max: number): number {
  return Math.min(round_max, Math.max(SMALL_ROUND, Math.ceil((waiting + last) / 2)));
}

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
 * Does many small things together: what comes while a round is under way waits for the next one, or the one after where
 * it is much. There is no timer, so what comes alone is done at once. Throws DATABASE_BUSY when too many wait.
 */
export function createRounds<Item, Result>({ round_max, waiting_max, work }: RoundsOptions<Item, Result>) {
  let waiting: Waiting<Item, Result>[] = [];
  let is_running = false;

  async function run(): Promise<void> {
    if (is_running) return;
    is_running = true;
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
