import { openFilesMax } from '../meter.ts';

/** How much is measured. */
export interface Plan {
  /** Sockets, and polls, that watch one thing. */
  sizes: number[];
  /** How many hold on while memory is measured, and when there are many things to watch. */
  many: number;
  /** How many sockets, and how many polls, hold on at the same time. */
  both: number;
  /** Times that Muster and the bare server are measured in turn; the peers once less, but once. */
  rounds: number;
  paced_s: number;
  saturated_s: number;
  /** After opening, until memory is looked at. */
  settle_ms: number;
  /** How often a run is repeated in which others used the processors. */
  repeats_max: number;
}

/** What is offered in all when latency is measured: bodies a second. */
export const OFFERED = 100_000;

const SPARE_FILES = 1_000;

/** `--quick`: less than a minute. `--patient`: waits until nobody else uses the machine. */
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
      rounds: 1,
      paced_s: 1,
      saturated_s: 1,
      settle_ms: 500,
      repeats_max,
    };
  }
  return { sizes: [1_000, 5_000], many, both, rounds: 3, paced_s: 2, saturated_s: 1.5, settle_ms: 2_000, repeats_max };
}
