// What a seat costs: `bun bench/matchmaker.ts`, `--quick` for about a minute. The service with durable seats, all checks,
// receipts and tokens, on its own PostgreSQL and on one that is there (MUSTER_TEST_DATABASE_URL); the same route in Elysia,
// validated and empty, and Bun alone, which are the least that it could cost; the same statements without HTTP; and Colyseus
// on Bun, in memory. All in one run and by turns.
import { availableParallelism } from 'node:os';
import { openArena } from './matchmaker/arena.ts';
import { startCallers } from './matchmaker/calls.ts';
import { measureFinds } from './matchmaker/finds.ts';
import { measureOthers } from './matchmaker/others.ts';
import { openServerDatabase } from './matchmaker/outside.ts';
import { startBare, startColyseus } from './matchmaker/peers.ts';
import { readPlan } from './matchmaker/plan.ts';
import { type Goal, printGoals } from './report.ts';

const plan = readPlan(process.argv.slice(2));
const started = performance.now();
console.log(`${availableParallelism()} cores, which the server, its PostgreSQL and the load share. Medians of ${plan.rounds} rounds by turns,
after ${plan.warm_s} s in which each has warmed up. Lobbies of 100; PostgreSQL durable as it is by default.`);

await using opened = new AsyncDisposableStack();
const embedded = opened.use(await openArena('Muster, embedded PostgreSQL'));
const outside = await openServerDatabase();
if (outside) opened.use(outside);
const external = outside && opened.use(await openArena('Muster, PostgreSQL of its own', outside));
const elysia = opened.use(await startBare('elysia', embedded.answer));
const bun = opened.use(await startBare('bun', embedded.answer));
const colyseus = await startColyseus();
if (colyseus) opened.use(colyseus);
const callers = opened.use(await startCallers());

const goals: Goal[] = [];
const arenas = external ? [embedded, external] : [embedded];
goals.push(...(await measureFinds({ arenas, bare: [elysia, bun], colyseus, callers, plan })));
goals.push(...(await measureOthers({ arena: embedded, elysia, callers, plan })));
printGoals(goals);
console.log(`\n${((performance.now() - started) / 1_000).toFixed(0)} s`);
await opened.disposeAsync();
process.exit();
