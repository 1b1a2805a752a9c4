// Measures the cost of a seat: `bun bench/matchmaker.ts`, `--quick` for a minute or two. The service has durable seats,
// all checks and tokens. The peers are Elysia with the same route, validated and empty; Bun alone; and Colyseus on Bun,
// in memory. All run by turns, beside an identical copy of the service: the difference of the two is the noise of the
// run.
import { availableParallelism } from 'node:os';
import { findsIn, openArena } from './matchmaker/arena.ts';
import { startCallers } from './matchmaker/calls.ts';
import { measureCreates } from './matchmaker/creates.ts';
import { comparisonOfCopies, findGoals, measureFinds, warmUp } from './matchmaker/finds.ts';
import { measureHalfLoad } from './matchmaker/half-load.ts';
import { startIdleService } from './matchmaker/idle.ts';
import { measureJoins } from './matchmaker/joins.ts';
import { addEndedVisits } from './matchmaker/lobbies.ts';
import { measureManyLobbies } from './matchmaker/many-lobbies.ts';
import { startBare, startColyseus } from './matchmaker/peers.ts';
import { readPlan } from './matchmaker/plan.ts';
import { measurePlanning } from './matchmaker/planning.ts';
import { printGoals, show } from './report.ts';
import { runBench } from './run.ts';

const plan = readPlan(process.argv.slice(2));

await runBench(async (opened) => {
  console.log(`${availableParallelism()} cores, which the server, its PostgreSQL and the load share. Medians of ${plan.repetitions} turns, after ${plan.warm_s} s of
warm-up each. Each find comes from another address. "thread", "rest": processor time of the service's main thread and of
its other threads, for each request.`);

  const idle = await startIdleService(opened, { has_lobby: false });
  const others = opened.use(new AsyncDisposableStack());
  const callers = others.use(await startCallers());
  const arena = await openArena(others);
  const arena_of_copy = await openArena(others);
  const targets = {
    elysia: await startBare(others, 'elysia', arena.answer),
    muster: findsIn('Muster', arena, plan),
    copy: findsIn('Muster, an identical copy', arena_of_copy, plan),
    bun: await startBare(others, 'bun', arena.answer),
    colyseus: await startColyseus(others),
  };
  for (const { database, namespace_id, lobbies } of [arena, arena_of_copy]) {
    await lobbies.empty(plan);
    const visits = { namespace_id, lobby_ids: lobbies.ids, count: plan.ended_visits };
    const size = await addEndedVisits(database, visits);
    console.log(`${show.perSecond(plan.ended_visits)} ended visits, the rows of a day with as many finds: ${size}.`);
  }

  await warmUp(targets, callers, plan);
  const finds = await measureFinds(targets, callers, plan);
  const goals = [
    ...findGoals(targets, finds),
    await measureHalfLoad(targets, finds, callers, plan),
    ...(await measureJoins(arena, targets.elysia, callers, plan)),
    await measureManyLobbies(arena, callers, plan),
    measurePlanning(plan),
  ];
  await measureCreates(others, arena, callers, plan);
  await others.disposeAsync();
  const idle_with_lobby = await startIdleService(opened, { has_lobby: true });
  goals.push(await idle.measure());
  await idle_with_lobby.measure();

  const copies = comparisonOfCopies(targets, finds);
  printGoals([copies, ...goals]);
  if (!copies.is_met)
    console.log('\nNOT CONCLUSIVE: the copies of the service differ. Run it again on a quieter machine.');
});
