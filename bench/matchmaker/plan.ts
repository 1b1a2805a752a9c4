/** How much is measured. */
export interface Plan {
  /** Times that each is measured, by turns. */
  rounds: number;
  /** Requests until what runs often has been compiled; not measured. */
  warm_s: number;
  seconds: number;
  /** How many ask at one time. */
  clients: number[];
  lobbies: number;
  /** A namespace with few lobbies, and one with many. */
  few: number;
  many: number;
  /** Lobbies that players make for themselves: each is a process. */
  creates: number;
}

export function readPlan(words: string[]): Plan {
  const sizes = { clients: [256, 64, 1], lobbies: 5_000, few: 100, many: 100_000 };
  if (words.includes('--quick')) return { ...sizes, rounds: 1, warm_s: 4, seconds: 1, creates: 8 };
  return { ...sizes, rounds: 5, warm_s: 15, seconds: 2, creates: 24 };
}
