import { expect, test } from 'bun:test';
import { IS_FULL_LENGTH } from '../../support/full-length.ts';
import { openChance } from '../../support/matchmaker/chance.ts';
import { simulate } from '../../support/matchmaker/lobby-simulation.ts';

const SEEDS = IS_FULL_LENGTH ? 2_000 : 200;
const STEPS = 500;
/** Lines of the trace, without numbers, that must occur often. */
const OUTCOMES = [
  'is seated in lobby ',
  'creates lobby ',
  'is decided alone',
  'tries again',
  'has too many players',
  'waited and is seated in lobby ',
  'waited and creates lobby ',
  'follows the current version',
  'MATCHMAKER_NO_AVAILABLE_LOBBIES',
  'MATCHMAKER_LOBBY_FULL',
  'MATCHMAKER_LOBBY_STOPPED',
  'MATCHMAKER_TOO_MANY_LOBBIES',
];
const seed = Number(process.env.MUSTER_TEST_SEED ?? crypto.getRandomValues(new Uint16Array(1))[0]);

test(`simulation: in ${SEEDS} runs of ${STEPS} steps, two processes with caches break no rule`, () => {
  console.log(`seeds from ${seed} (MUSTER_TEST_SEED)`);
  const counts = new Map<string, number>();
  for (let run = 0; run < SEEDS; run += 1) {
    const trace: string[] = [];
    const faults = simulate(openChance(seed + run, 0), STEPS, trace);
    if (faults.length > 0) {
      throw new Error(`MUSTER_TEST_SEED=${seed + run}: ${faults.join('\n')}\n${trace.slice(-20).join('\n')}`);
    }
    for (const line of trace) {
      const what = line.replace(/[\d+]+ ?/g, '');
      counts.set(what, (counts.get(what) ?? 0) + 1);
    }
  }
  if (IS_FULL_LENGTH) console.log([...counts].map(([what, count]) => `${count} ${what}`).join('; '));
  for (const what of OUTCOMES) expect(counts.get(what)).toBeGreaterThan(SEEDS);
}, 300_000);

test('simulation: one seed gives one trace, and another seed gives another trace', () => {
  const traceOf = (one: number) => {
    const trace: string[] = [];
    simulate(openChance(one, 0), STEPS, trace);
    return trace;
  };
  const trace = traceOf(seed);
  expect(trace.length).toBeGreaterThan(STEPS / 4);
  expect(traceOf(seed)).toEqual(trace);
  expect(traceOf(seed + 1)).not.toEqual(trace);
});
