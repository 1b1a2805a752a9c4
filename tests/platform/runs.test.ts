import { expect, test } from 'bun:test';
import { coalesceRuns, shareRuns } from '../../src/platform/runs.ts';
import { rejectionOf } from '../support/refusal.ts';

test('coalesceRuns: calls during a run lead to one more run after it', async () => {
  const gates = Array.from({ length: 3 }, () => Promise.withResolvers<void>());
  let runs = 0;
  let running_count = 0;
  let running_max = 0;
  const run = coalesceRuns(async () => {
    running_count += 1;
    running_max = Math.max(running_max, running_count);
    runs += 1;
    await gates[runs - 1]?.promise;
    running_count -= 1;
  });
  const first = run();
  expect(runs).toBe(1);
  await Promise.all([run(), run(), run()]);
  expect(runs).toBe(1);
  gates[0]?.resolve();
  gates[1]?.resolve();
  await first;
  expect(runs).toBe(2);
  gates[2]?.resolve();
  await run();
  expect({ runs, running_max }).toEqual({ runs: 3, running_max: 1 });
});

test('coalesceRuns: a failure reaches the call that ran it, and the next call runs again', async () => {
  const gate = Promise.withResolvers<void>();
  let runs = 0;
  const run = coalesceRuns(async () => {
    runs += 1;
    await gate.promise;
    if (runs === 1) throw new Error('the first run');
  });
  const failing = rejectionOf(Error, run());
  await run();
  gate.resolve();
  expect((await failing).message).toBe('the first run');
  expect(runs).toBe(1);
  await run();
  expect(runs).toBe(2);
});

test('shareRuns: calls during a run share the next one', async () => {
  let began = 0;
  let gate = Promise.withResolvers<void>();
  const ask = shareRuns(async () => {
    began += 1;
    const run = began;
    await gate.promise;
    if (run === 2) throw new Error('the second run');
    return run;
  });
  const first = [ask(), ask()];
  await new Promise(setImmediate);
  const second = [ask(), ask()];
  gate.resolve();
  expect(await Promise.all(first)).toEqual([1, 1]);
  for (const one of second) expect((await rejectionOf(Error, one)).message).toBe('the second run');
  gate = Promise.withResolvers();
  gate.resolve();
  expect(await ask()).toBe(3);
});

test('shareRuns: runs begin apart, and calls in between share the next one', async () => {
  const APART_MS = 50;
  const began: number[] = [];
  const ask = shareRuns(async () => began.push(performance.now()), APART_MS);
  await ask();
  const second = [ask(), ask()];
  await Bun.sleep(0);
  expect(await Promise.all([...second, ask()])).toEqual([2, 2, 2]);
  // A timer never fires early.
  expect((began[1] ?? 0) - (began[0] ?? 0)).toBeGreaterThanOrEqual(APART_MS - 1);
});
