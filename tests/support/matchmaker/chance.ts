import fc from 'fast-check';

/** Random choices, which are the same for the same seed. */
export interface Chance {
  /** Returns a whole number below a limit. */
  below(limit: number): number;
  pick<Item>(items: readonly Item[]): Item;
  /** Returns true in one of this many cases. */
  oneIn(cases: number): boolean;
}

const LIMIT = 2 ** 30;

/** Each `index` has random choices of its own. */
export function openChance(seed: number, index: number): Chance {
  const [numbers] = fc.sample(fc.infiniteStream(fc.noBias(fc.nat(LIMIT - 1))), {
    seed: seed + index * 7_919,
    numRuns: 1,
  });
  const below = (limit: number): number => {
    const { value } = numbers?.next() ?? { value: 0 };
    return Math.floor(((value ?? 0) / LIMIT) * limit);
  };
  return {
    below,
    pick(items) {
      const item = items[below(items.length)];
      if (item === undefined) throw new Error('there is nothing to pick from');
      return item;
    },
    oneIn: (cases) => below(cases) === 0,
  };
}
