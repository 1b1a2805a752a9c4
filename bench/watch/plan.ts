import { openFilesMax } from '../meter.ts';

/** The extent of a run. */
export interface Plan {
  /** Numbers of sockets, and of polls, that watch one thing. */
  sizes: number[];
  /** Watchers while memory is measured, and of many things. */
  many: number;
  /** Sockets, and polls, that are held at the same time. */
  both: number;
  /** Turns of Muster, its copy and Bun alone. With sockets, the other servers have one turn less. */
  repetitions: number;
  paced_s: number;
  saturated_s: number;
  /** Time from opening the watchers until memory is measured. */
  settle_ms: number;
  /** How often to repeat a turn during which other programs used the processors. */
  repeats_max: number;
}

/** Bodies a second, in all, while latency is measured. */
export const OFFERED = 100_000;

const SPARE_FILES = 1_000;

/** `--quick`: a minute or two. `--patient`: repeats each turn until no other program uses the machine. */
export function readPlan(words: string[]): Plan {
  const repeats_max = words.includes('--patient') ? 100 : 0;
  const files = openFilesMax() - SPARE_FILES;
  const many = Math.min(10_000, files);
  const both = Math.min(10_000, Math.floor(files / 2));
  if (words.includes('--quick')) {
    return {
      sizes: [1_000],
      many: 2_000,
      both: 1_000,
      repetitions: 1,
      paced_s: 1,
      saturated_s: 1,
      settle_ms: 500,
      repeats_max,
    };
  }
  return {
    sizes: [1_000, 5_000],
    many,
    both,
    repetitions: 3,
    paced_s: 2,
    saturated_s: 1.5,
    settle_ms: 2_000,
    repeats_max,
  };
}
