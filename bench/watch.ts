// What it costs to tell all who watch: `bun bench/watch.ts`, `--quick` for less than a minute. Muster against the least
// that it could cost, which is Bun's own server without anything else, and against ws, Socket.IO and Colyseus, all in one
// run and by turns. The bodies are the same bytes for all. "Bun alone" publishes each change by itself, as changes come
// that are commits; "several in one go": those that are there together leave in one packet to each.
import { availableParallelism } from 'node:os';
import { type Goal, printGoals } from './report.ts';
import { measureHolding, measureHoldingBoth } from './watch/holding.ts';
import { installPeers } from './watch/peers.ts';
import { readPlan } from './watch/plan.ts';
import { measureOneThing } from './watch/pushing.ts';

const plan = readPlan(process.argv.slice(2));
const started = performance.now();
console.log(
  `${availableParallelism()} cores: one for the server, one for the load; PostgreSQL and this process share them.
Changes are committed to PostgreSQL by this process, with the statement of PUT /matchmaker/lobbies/state, not over HTTP.
Medians of ${plan.rounds} rounds by turns. "load" and "others": cores that the load used, and that other programs did.`,
);

const goals: Goal[] = [];
await using peers = await installPeers();
goals.push(...(await measureHolding('sockets', plan)));
for (const size of plan.sizes) goals.push(...(await measureOneThing('sockets', size, plan, peers)));
for (const size of plan.sizes) goals.push(...(await measureOneThing('polls', size, plan, undefined)));
goals.push(...(await measureHolding('polls', plan)));
goals.push(...(await measureHoldingBoth(plan)));
printGoals(goals);
console.log(`\n${((performance.now() - started) / 1_000).toFixed(0)} s`);
