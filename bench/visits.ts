// Measures what a visit costs PostgreSQL: the processor time and the write-ahead log of a player's seat, connect and leave,
// in rounds of one size: `bun bench/visits.ts`, `--quick` for half a minute. The stores run by turns with an identical copy,
// and with those of other checkouts, whose directories follow: `bun bench/visits.ts ../before`.
import { resolve } from 'node:path';
import { atMost, middleOf, printGoals, printTable, show } from './report.ts';
import { runBench } from './run.ts';
import { openCheckout, type VisitCost } from './visits/checkout.ts';

const ROUND_SIZE = 80;
const LOG_BYTES_MAX = 700;
const words = process.argv.slice(2);
const is_quick = words.includes('--quick');
const plan = is_quick
  ? { repetitions: 1, rounds: 25, ended_visits: 20_000 }
  : { repetitions: 5, rounds: 50, ended_visits: 100_000 };
const HERE = resolve(import.meta.dir, '..');
const others = words.filter((word) => !word.startsWith('--')).map((word) => resolve(word));

await runBench(async (opened) => {
  const roots = [HERE, HERE, ...others];
  const all = [];
  for (const [index, root] of roots.entries()) {
    const name = index === 0 ? 'this checkout' : index === 1 ? 'an identical copy' : root;
    all.push({ name, checkout: await openCheckout(opened, root, plan), costs: [] as VisitCost[] });
  }
  // The first turns prepare statements and fill the caches.
  for (const { checkout } of all) await checkout.visit(plan.rounds, ROUND_SIZE);
  for (let repetition = 0; repetition < plan.repetitions; repetition += 1) {
    for (const { checkout, costs } of all) costs.push(await checkout.visit(plan.rounds, ROUND_SIZE));
  }
  const logOf = ({ seat, connect, leave }: VisitCost) => seat.log_bytes + connect.log_bytes + leave.log_bytes;
  const rows = all.map(({ name, costs }) => [
    name,
    ...(['seat', 'connect', 'leave'] as const).flatMap((step) => [
      show.microseconds(middleOf(costs.map((cost) => cost[step].seconds))),
      middleOf(costs.map((cost) => cost[step].log_bytes)).toFixed(0),
    ]),
    middleOf(costs.map(logOf)).toFixed(0),
  ]);
  const heads = ['seat, µs', 'bytes', 'connect, µs', 'bytes', 'leave, µs', 'bytes', 'visit, bytes'];
  printTable(`A visit of a player, in rounds of ${ROUND_SIZE}: processor time and log of PostgreSQL`, [
    ['', ...heads],
    ...rows,
  ]);
  const ours = middleOf((all[0]?.costs ?? []).map(logOf));
  printGoals([atMost('write-ahead log of a visit, of 700 bytes', 1, ours / LOG_BYTES_MAX)]);
});
