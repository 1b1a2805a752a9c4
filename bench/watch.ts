// Measures the cost of notifying watchers: `bun bench/watch.ts`, `--quick` for a minute or two. The peers are Bun's own
// server alone, ws, Socket.IO and Colyseus. All run by turns, beside an identical copy of Muster: the difference of the
// two is the noise of the run. All send the same bytes. "Bun alone" publishes each change by itself; "several in one
// go" puts changes that come together into one packet for each watcher.
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
Medians of ${plan.repetitions} turns. "thread", "rest": the server's main thread and its other threads; "others": cores that other
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
