import { middleOf, printTable, show } from '../report.ts';

const REPETITIONS = 3;

/** A way to a game server. */
interface Way {
  name: string;
}

/** The figures of one turn of a way, or the medians of several. */
export interface Result {
  a_second: number;
  p50_ms: number;
  p99_ms: number;
}

interface WaysOptions<OneWay extends Way> {
  title: string;
  ways: OneWay[];
  /** The arguments of the process that puts load on a way, and writes its result as JSON. */
  argumentsFor: (way: OneWay) => string[];
}

/** Measures ways by turns, and prints each beside the first. Returns the medians of each. */
export async function measureWays<OneWay extends Way>(options: WaysOptions<OneWay>): Promise<Result[]> {
  const { title, ways, argumentsFor } = options;
  const all: Result[][] = ways.map(() => []);
  for (let repetition = 0; repetition < REPETITIONS; repetition += 1) {
    for (const [index, way] of ways.entries()) {
      all[index]?.push(JSON.parse(await Bun.$`${process.execPath} ${argumentsFor(way)}`.text()));
    }
  }
  const results = all.map((turns) => ({
    a_second: middleOf(turns.map(({ a_second }) => a_second)),
    p50_ms: middleOf(turns.map(({ p50_ms }) => p50_ms)),
    p99_ms: middleOf(turns.map(({ p99_ms }) => p99_ms)),
  }));
  const first = ways[0]?.name ?? '';
  const rows = results.map(({ a_second, p50_ms, p99_ms }, index) => [
    ways[index]?.name ?? '',
    show.perSecond(a_second),
    show.ratio(a_second / (results[0]?.a_second ?? 1)),
    p50_ms.toFixed(2),
    p99_ms.toFixed(2),
  ]);
  printTable(title, [['', 'a second', `of ${first}`, 'p50 ms', 'p99 ms'], ...rows]);
  return results;
}
