import { expect } from 'bun:test';

/** The source of a server that writes numbers to both streams until it gets SIGTERM, and ends a second later. */
export const COUNTING = `trap 'echo asked; sleep 1; echo end; exit 7' TERM
n=0; while :; do echo $n; echo $n >&2; n=$((n+1)); sleep 0.2; done`;

/** How a server ends, and what it writes after its numbers. */
export interface Ending {
  end: { exit_code: number | null; exit_signal: string | null };
  last_lines: string[];
}

/** The ending of a counting server that got SIGTERM. */
export const ASKED: Ending = { end: { exit_code: 7, exit_signal: null }, last_lines: ['asked', 'end'] };

/** Checks that the log of a counting server has each number once, in order, and then its last lines. */
export function expectEachNumberOnce(log: { lines: string[]; errors: string[] }, { last_lines } = ASKED): void {
  const { lines } = log;
  const numbers = lines.slice(0, lines.length - last_lines.length);
  expect(lines).toEqual([...numbers.map((_, index) => String(index)), ...last_lines]);
  const errors = log.errors.filter((line) => !line.startsWith('[muster]'));
  // The service may end after it has read one of the two streams.
  expect(errors).toEqual(numbers.slice(0, errors.length));
  expect(errors.length).toBeGreaterThanOrEqual(numbers.length - 1);
}
