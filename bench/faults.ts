// Measures what one tenant, one request or a failing machine does to all others: `bun bench/faults.ts`, after
// `bun run build`.
import { existsSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { commandOf } from '../tests/support/program.ts';
import { avatars } from './faults/avatars.ts';
import { compression } from './faults/compression.ts';
import { descriptors } from './faults/descriptors.ts';
import { diskFull } from './faults/disk-full.ts';
import { drips } from './faults/drips.ts';
import { ending } from './faults/ending.ts';
import { glob } from './faults/glob.ts';
import { history } from './faults/history.ts';
import { machine } from './faults/machine.ts';
import { readOptions } from './faults/options.ts';
import { passwords } from './faults/passwords.ts';
import { portTaken } from './faults/port-taken.ts';
import { readOnly } from './faults/read-only.ts';
import { readers } from './faults/readers.ts';
import { retention } from './faults/retention.ts';
import { Interruption, runFault } from './faults/run-fault.ts';
import { yes } from './faults/yes.ts';
import { type Goal, printGoals } from './report.ts';

const FAULTS = [
  ending,
  glob,
  portTaken,
  readOnly,
  passwords,
  drips,
  descriptors,
  diskFull,
  yes,
  readers,
  compression,
  avatars,
  retention,
  history,
  machine,
];

const options = readOptions(process.argv.slice(2), FAULTS);
const [executable = ''] = commandOf('executable');
if (!existsSync(executable)) {
  console.error(`There is no executable at ${executable}: make it with "bun run build".`);
  process.exit(2);
}
console.log(
  `${availableParallelism()} cores, which all share. Each fault has a service of its own. live: GET /health/live, 50 a second;
find: finds of a game that has no part in it, 20 a second. Times are from when a request was due.`,
);

const interrupted = Promise.withResolvers<never>();
interrupted.promise.catch(() => {});
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => interrupted.reject(new Interruption(`interrupted by ${signal}`)));
}

const goals: Goal[] = [];
try {
  for (const fault of options.faults) goals.push(...(await runFault(fault, options.is_quick, interrupted.promise)));
} catch (error) {
  if (error instanceof Interruption) process.exit(130);
  throw error;
}
printGoals(goals);
process.exit(goals.every(({ is_met }) => is_met) ? 0 : 1);
