// Measures what several processes on one database cost: `bun bench/machines.ts`, `--quick` for a minute. Finds by the
// same number of clients, with one, two and four processes by turns: in one namespace that all of them serve, and with a namespace
// for each process. The processes of a turn are the only ones that run: the others are paused. With `--pods`, it measures only
// pods of Kubernetes, on the cluster that `.ci/kubernetes-lab/lab build` has built, with the executable that
// MUSTER_TEST_EXECUTABLE names.
import { availableParallelism } from 'node:os';
import { EXECUTABLE } from '../tests/support/program.ts';
import { openGroup } from './machines/group.ts';
import { measurePods } from './machines/pods.ts';
import { takeSharedTurn } from './machines/turns.ts';
import { startCallers } from './matchmaker/calls.ts';
import { cellsOf, medianOf, TURN_HEADS, type Turn } from './matchmaker/targets.ts';
import { printTable } from './report.ts';
import { runBench } from './run.ts';

const COUNTS = [1, 2, 4];
const CLIENTS = [256, 64];
const is_quick = process.argv.includes('--quick');
const plan = { repetitions: is_quick ? 1 : 5, warm_s: is_quick ? 3 : 15, seconds: is_quick ? 1 : 2, lobbies: 5_000 };

await runBench(async (opened) => {
  if (process.argv.includes('--pods')) {
    if (EXECUTABLE === undefined) throw new Error('name the executable: set MUSTER_TEST_EXECUTABLE=dist/muster');
    return await measurePods(opened, { repetitions: is_quick ? 1 : 3, pods: is_quick ? 8 : 16 });
  }
  const largest = Math.max(...COUNTS);
  const group = await openGroup(opened, largest);
  const callers = await Promise.all(Array.from({ length: largest }, async () => opened.use(await startCallers())));
  console.log(`${availableParallelism()} cores, which the processes, their PostgreSQL and the load share. Medians of ${plan.repetitions} turns, after ${plan.warm_s} s of
warm-up of each process. "thread", "rest": processor time of the main threads of all processes and of their other threads,
for each find.`);

  for (const namespaces of ['one namespace', 'a namespace for each process'] as const) {
    const loadedOf = (count: number) =>
      group.processes.slice(0, count).map((program, index) => {
        const played = group.namespaces[namespaces === 'one namespace' ? 0 : index];
        const caller = callers[index];
        if (!played || !caller) throw new Error('each process has a namespace and a caller');
        return { program, played, caller };
      });
    await takeSharedTurn(group, loadedOf(largest), { ...plan, clients: 64, seconds: plan.warm_s });
    for (const clients of CLIENTS) {
      const turns = new Map<number, Turn[]>(COUNTS.map((count) => [count, []]));
      for (let repetition = 0; repetition < plan.repetitions; repetition += 1) {
        for (const count of COUNTS) {
          turns.get(count)?.push(await takeSharedTurn(group, loadedOf(count), { ...plan, clients }));
        }
      }
      const medians = COUNTS.map((count) => ({ count, turn: medianOf(turns.get(count) ?? []) }));
      const [one] = medians;
      if (!one) throw new Error('one process is measured');
      printTable(`Finds in ${namespaces}, ${clients} clients in all`, [
        ['', ...TURN_HEADS.with(1, 'of one')],
        ...medians.map(({ count, turn }) => [
          `${count} ${count === 1 ? 'process' : 'processes'}`,
          ...cellsOf(turn, one.turn),
        ]),
      ]);
    }
  }
});
