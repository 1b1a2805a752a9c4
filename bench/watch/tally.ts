import { type LoadReport, now } from './orders.ts';

/** Counts bodies, and reports when the last watcher has seen a number. */
export function createTally(report: (what: LoadReport) => void) {
  const seen_by = new Map<number, number>();
  let expected = 0;
  let bodies = 0;

  function count(number: number): void {
    const by = (seen_by.get(number) ?? 0) + 1;
    if (by < expected) seen_by.set(number, by);
    else {
      seen_by.delete(number);
      report({ reached: number, at: now() });
    }
  }

  return {
    get bodies() {
      return bodies;
    },
    /** Sets the number of watchers. */
    expect(watchers: number): void {
      expected = watchers;
    },
    /** Notes that a watcher has received a body. One that has a newer body has seen those before it too. */
    note(watcher: { seen: number | undefined }, number: number): void {
      bodies += 1;
      if (watcher.seen !== undefined) for (let one = watcher.seen + 1; one <= number; one += 1) count(one);
      watcher.seen = number;
    },
  };
}
