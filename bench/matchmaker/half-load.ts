import { atMost, type Goal, middleOf, printTable, show } from '../report.ts';
import type { Callers } from './calls.ts';
import type { Finds, Targets } from './finds.ts';
import type { Plan } from './plan.ts';
import { takeTurn } from './targets.ts';

const CLIENTS = 64;

/** Measures latency at half of the rate that the service reaches, beside the empty route at the same rate. */
export async function measureHalfLoad(
  { elysia, muster }: Targets,
  { turnOf }: Finds,
  callers: Callers,
  { repetitions, seconds }: Plan,
): Promise<Goal> {
  const per_second = turnOf(muster, CLIENTS).per_second / 2;
  const options = { clients: CLIENTS, seconds, per_second };
  const all = [elysia, muster].map((target) => ({ target, p50s: [] as number[], p99s: [] as number[] }));
  for (let repetition = 0; repetition < repetitions; repetition += 1) {
    for (const { target, p50s, p99s } of all) {
      const { p50_ms, p99_ms } = await takeTurn(target, callers, options);
      p50s.push(p50_ms);
      p99s.push(p99_ms);
    }
  }
  printTable(`Half load: ${show.perSecond(per_second)} finds a second, ${CLIENTS} clients`, [
    ['', 'p50 ms', 'p99 ms'],
    ...all.map(({ target, p50s, p99s }) => [target.name, middleOf(p50s).toFixed(2), middleOf(p99s).toFixed(2)]),
  ]);
  const [empty = Number.NaN, mine = Number.NaN] = all.map(({ p99s }) => middleOf(p99s));
  const what = `p99 at half load (${mine.toFixed(2)} ms), of the empty route's at the same rate (${empty.toFixed(2)} ms)`;
  return atMost(what, 3, mine / empty);
}
