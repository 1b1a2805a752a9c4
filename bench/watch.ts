// What it costs to notify watchers: `bun bench/watch.ts`, `--quick` for a minute or two. Muster beside Bun's own server with
// nothing else, which is the least that it could cost, and beside ws, Socket.IO and Colyseus; all in one run and by turns, with
// an identical copy of Muster to show what the run is worth. All send the same bytes. "Bun alone" publishes each change by
// itself, as commits come; "several in one go": changes that are there together leave in one packet for each watcher.
import { availableParallelism } from 'node:os';
import { printGoals } from './report.ts';
import { runBench } from './run.ts';
import { measureHolding, measureHoldingBoth } from './watch/holding.ts';
import { installPeers } from './watch/peers.ts';
import { readPlan } from './watch/plan.ts';
import { measureOneThing } from './watch/pushing.ts';

const plan = readPlan(process.argv.slice(2));

await runBench(async (opened) => {
  console.log(`${availableParallelism()} cores: one for the server, one for the load; PostgreSQL and this process share them.
Changes are committed to PostgreSQL by this process, with the statement of PUT /matchmaker/lobbies/state, not over HTTP.
Medians of ${plan.rounds} turns. "thread", "rest": the server's main thread and its other threads; "others": cores that other
programs used.`);

  const peers = opened.use(await installPeers());
  const goals = await measureHolding(opened, 'sockets', plan);
  for (const size of plan.sizes) goals.push(...(await measureOneThing(opened, { way: 'sockets', size, plan, peers })));
  for (const size of plan.sizes) goals.push(...(await measureOneThing(opened, { way: 'polls', size, plan })));
  goals.push(...(await measureHolding(opened, 'polls', plan)));
  goals.push(...(await measureHoldingBoth(opened, plan)));
  printGoals(goals);
  const is_conclusive = goals.every(({ what, is_met }) => is_met || !what.startsWith('A/A'));
  if (!is_conclusive) console.log('\nNOT CONCLUSIVE: copies of the service differ. Run it again on a quieter machine.');
});
