import { sql } from 'drizzle-orm';
import { atMost, type Goal, middleOf, printTable, show } from '../report.ts';
import { type Arena, findsIn } from './arena.ts';
import type { Callers } from './calls.ts';
import type { Plan } from './plan.ts';
import { takeTurn } from './targets.ts';

/** Enough that a few lobbies are not full after all turns: a new lobby would start a server, beside what is measured. */
const SEATS = 1_000_000;

/** Measures the finds of one client, among few lobbies and among many, one after the other. */
export async function measureManyLobbies(arena: Arena, callers: Callers, plan: Plan): Promise<Goal> {
  const p50s: number[] = [];
  for (const lobbies of [plan.few, plan.many]) {
    const target = findsIn('Muster', arena, { lobbies, seats: SEATS });
    // The first turn warms up.
    await takeTurn(target, callers, { clients: 1, seconds: 1 });
    const same = { ...target, prepare: async () => {} };
    const turns: number[] = [];
    for (let repetition = 0; repetition < plan.repetitions; repetition += 1) {
      turns.push((await takeTurn(same, callers, { clients: 1, seconds: plan.seconds })).p50_ms);
    }
    await assertNoneAdded(arena, lobbies);
    p50s.push(middleOf(turns));
  }
  const [few = Number.NaN, many = Number.NaN] = p50s;
  const [few_title, many_title] = [plan.few, plan.many].map((count) => `${show.perSecond(count)} open lobbies`);
  printTable('Finds, one client, by the number of lobbies', [
    ['', 'p50 ms'],
    [few_title ?? '', few.toFixed(2)],
    [many_title ?? '', many.toFixed(2)],
  ]);
  return atMost(`a find among ${many_title}, of one among ${few_title}`, 2, many / few);
}

async function assertNoneAdded({ database, namespace_id }: Arena, expected: number): Promise<void> {
  const [row] = await database.queries.execute<{ running: number }>(sql`
    select count(*)::int as running from lobbies where namespace_id = ${namespace_id} and stop_ts is null`);
  if (row?.running !== expected) throw new Error(`${row?.running} lobbies run, but the finds need only ${expected}`);
}
