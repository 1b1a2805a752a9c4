import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import type { ServiceEvent } from '../../src/platform/events.ts';
import { type Loop, listLoops, startLoop } from '../../src/platform/loop.ts';
import { runPending, waitFor } from '../support/wait.ts';

const NEVER_MS = 600_000;

let events: ServiceEvent[];
let stopping: AbortController;
beforeEach(() => {
  events = [];
  stopping = new AbortController();
});
afterEach(() => stopping.abort());

function start(step: (signal: AbortSignal) => Promise<number>, every_ms = NEVER_MS): Loop {
  const { signal } = stopping;
  return startLoop({ name: 'test', every_ms, signal, events: { emit: (event) => events.push(event) }, step });
}

/** Returns a step that ends when the test says so. */
function makeGate() {
  let begun = 0;
  let running_count = 0;
  let running_max = 0;
  let end = Promise.withResolvers<void>();
  return {
    async step() {
      begun += 1;
      running_count += 1;
      running_max = Math.max(running_max, running_count);
      await end.promise;
      running_count -= 1;
      return 0;
    },
    begun: () => begun,
    running_max: () => running_max,
    /** Ends the current step; the next one waits again. */
    endStep() {
      end.resolve();
      end = Promise.withResolvers();
    },
  };
}

describe('a loop', () => {
  test('takes its first step at once, and the next when it is woken', async () => {
    const gate = makeGate();
    const loop = start(gate.step);
    expect(gate.begun()).toBe(1);
    gate.endStep();
    await runPending();
    expect(gate.begun()).toBe(1);
    loop.wake();
    await waitFor(() => gate.begun() === 2, 'the second step');
    gate.endStep();
  });

  test('takes one step at a time, however often it is woken', async () => {
    const gate = makeGate();
    const loop = start(gate.step);
    for (let times = 0; times < 20; times += 1) loop.wake();
    await runPending();
    expect(gate.begun()).toBe(1);
    gate.endStep();
    await waitFor(() => gate.begun() === 2, 'the second step');
    gate.endStep();
    await runPending();
    expect([gate.begun(), gate.running_max()]).toEqual([2, 1]);
  });

  test('does not lose a wake-up at any moment of a step', async () => {
    let wanted = 0;
    let done = 0;
    const loop = start(async () => {
      done = wanted;
      await Promise.resolve();
      return 0;
    });
    for (let times = 0; times < 200; times += 1) {
      wanted += 1;
      loop.wake();
      for (let turns = 0; turns < times % 7; turns += 1) await Promise.resolve();
    }
    await waitFor(() => done === wanted, 'the last wake-up to take effect');
  });

  test('continues after its interval, and reports a correction that no wake-up requested', async () => {
    let steps = 0;
    start(async () => {
      steps += 1;
      return steps % 2;
    }, 1);
    await waitFor(() => events.length >= 2, 'two corrections');
    // The first step belongs to the start and is no correction.
    expect(events.slice(0, 2)).toEqual(Array(2).fill({ event: 'loop_corrected', loop: 'test', count: 1 }));
    expect(steps).toBeGreaterThanOrEqual(5);
  });

  test('reports no correction for a step that a wake-up requested', async () => {
    let steps = 0;
    const loop = start(async () => {
      steps += 1;
      return 3;
    });
    for (let times = 2; times < 5; times += 1) {
      loop.wake();
      await waitFor(() => steps === times, 'the step');
    }
    expect(events).toEqual([]);
  });

  test('that fails reports it, tries again after a pause that no wake-up shortens, and continues', async () => {
    let steps = 0;
    const pauses: number[] = [];
    let failed_at = 0;
    const loop = start(async () => {
      steps += 1;
      if (failed_at > 0) pauses.push(performance.now() - failed_at);
      failed_at = performance.now();
      if (steps < 3) throw new Error(`failure ${steps}`);
      return 0;
    });
    await waitFor(() => events.length === 1, 'the first failure');
    for (let times = 0; times < 20; times += 1) loop.wake();
    await runPending();
    expect(steps).toBe(1);
    await waitFor(() => steps === 3, 'the step that does not fail');
    expect(events).toMatchObject([
      { event: 'loop_failed', loop: 'test', failures: 1, cause: { message: 'failure 1' } },
      { event: 'loop_failed', loop: 'test', failures: 2, cause: { message: 'failure 2' } },
    ]);
    // Each pause has a minimum; how much longer it takes depends on the machine.
    expect(pauses.map((pause, number) => pause >= 199 * 2 ** number)).toEqual([true, true]);
    await runPending();
    loop.wake();
    await waitFor(() => steps === 4, 'a step after a wake-up');
    expect(events).toHaveLength(2);
  });

  test('whose step throws before its first promise continues as well', async () => {
    let steps = 0;
    start(() => {
      steps += 1;
      if (steps === 1) throw new Error('at once');
      return Promise.resolve(0);
    });
    await waitFor(() => steps === 2, 'the second step');
    expect(events).toMatchObject([{ event: 'loop_failed', failures: 1 }]);
  });
});

describe('a loop that is stopped', () => {
  test('has stopped when the current step ends, and takes no other', async () => {
    const gate = makeGate();
    const loop = start(gate.step);
    loop.wake();
    stopping.abort();
    await runPending();
    expect(Bun.peek.status(loop.stopped)).toBe('pending');
    gate.endStep();
    await loop.stopped;
    loop.wake();
    await runPending();
    expect(gate.begun()).toBe(1);
  });

  test('aborts the signal of its step', async () => {
    const loop = start(async (signal) => {
      await new Promise((resolve) => signal.addEventListener('abort', resolve));
      return 0;
    });
    stopping.abort();
    await loop.stopped;
    expect(events).toEqual([]);
  });

  const PAUSES = [
    { name: 'waits for its interval', step: async () => 0 },
    { name: 'waits to try again', step: () => Promise.reject(new Error('it fails')) },
  ];
  for (const { name, step } of PAUSES) {
    test(`has stopped at once if it ${name}`, async () => {
      const loop = start(step);
      await runPending();
      stopping.abort();
      await runPending();
      expect(Bun.peek.status(loop.stopped)).toBe('fulfilled');
    });
  }

  test('does not report a step that fails because of the stop', async () => {
    const loop = start(async (signal) => {
      await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
      return 0;
    });
    stopping.abort();
    await loop.stopped;
    expect(events).toEqual([]);
  });

  test('before its start takes no step', async () => {
    stopping.abort();
    let steps = 0;
    await start(async () => {
      steps += 1;
      return 0;
    }).stopped;
    expect(steps).toBe(0);
  });
});

describe('the status of a loop', () => {
  test('is its last step, how long it took, and when the next one begins', async () => {
    const log = { emit() {} };
    const { signal } = stopping;
    const gate = makeGate();
    const loop = startLoop({ name: 'known', every_ms: NEVER_MS, signal, events: log, step: gate.step });
    const begun = Date.now();
    expect(listLoops(log)).toMatchObject([{ name: 'known', steps: 1, took_ms: undefined, next_ts: undefined }]);
    gate.endStep();
    await runPending();
    const [state] = listLoops(log);
    expect(state).toMatchObject({ steps: 1, failures: 0, last_failure: undefined });
    expect(state?.took_ms).toBeGreaterThan(0);
    expect(state?.next_ts?.getTime()).toBeWithin(begun + NEVER_MS, Date.now() + NEVER_MS + 1);
    loop.wake();
    await waitFor(() => gate.begun() === 2, 'the second step');
    expect(listLoops(log)).toMatchObject([{ steps: 2, next_ts: undefined }]);
  });

  test('is its last failure without secrets, and how many there were in a row; nothing of other services', async () => {
    const log = { emit() {} };
    const { signal } = stopping;
    let fails = true;
    const step = async () => {
      if (fails) throw new Error('no connection to postgres://user:secret@host/base');
      return 0;
    };
    startLoop({ name: 'failing', every_ms: 1, signal, events: log, step });
    await waitFor(() => listLoops(log)[0]?.failures === 2, 'two failures');
    fails = false;
    expect(listLoops(log)[0]?.last_failure?.message).toBe('no connection to postgres://[redacted]@host/base');
    await waitFor(() => listLoops(log)[0]?.failures === 0, 'a step that succeeds');
    expect(listLoops(log)[0]?.last_failure).toBeDefined();
    expect(listLoops({ emit() {} })).toEqual([]);
  });

  test('is forgotten when it has stopped', async () => {
    const log = { emit() {} };
    const loop = startLoop({
      name: 'short',
      every_ms: NEVER_MS,
      signal: stopping.signal,
      events: log,
      step: async () => 0,
    });
    expect(listLoops(log)).toHaveLength(1);
    stopping.abort();
    await loop.stopped;
    expect(listLoops(log)).toEqual([]);
  });
});
