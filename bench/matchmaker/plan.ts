/** The extent of a run. */
export interface Plan {
  /** How often each target is measured. */
  repetitions: number;
  /** Seconds of finds before anything is measured, until the code that runs often is compiled. */
  warm_s: number;
  /** Seconds of a turn. */
  seconds: number;
  /** How many clients call at the same time. */
  clients: number[];
  lobbies: number;
  /** Visits that ended before the bench starts: the rows that a day with this many finds leaves. */
  ended_visits: number;
  /** Two sizes of a namespace, in lobbies. */
  few: number;
  many: number;
  /** Lobbies that players create; each starts a process. */
  creates: number;
}

export function readPlan(words: string[]): Plan {
  const sizes = { clients: [256, 64, 1], lobbies: 5_000, ended_visits: 1_000_000, few: 100, many: 100_000 };
  if (words.includes('--quick')) return { ...sizes, repetitions: 1, warm_s: 3, seconds: 1, creates: 8 };
  return { ...sizes, repetitions: 5, warm_s: 15, seconds: 2, creates: 24 };
}
