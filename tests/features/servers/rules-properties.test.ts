import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { nextStep, type Step } from '../../../src/features/servers/rules.ts';
import type { Observation } from '../../../src/features/servers/runtimes/runtime.ts';

const START = new Date('2026-03-01T12:00:00Z').getTime();
const KILL_TIMEOUT_MS = 1_000;
/** More than any way to the end takes. */
const STEPS_MAX = 12;
const PROCESS = { pid: 4_711, start_ticks: 1, boot_id: 'boot' };
const RUNNING: Observation = { is: 'running', process: PROCESS };
const EXITED: Observation = { is: 'ended', exit_code: 0, exit_signal: null };
const KILLED: Observation = { is: 'ended', exit_code: null, exit_signal: null };

/** A machine with one server: what is kept of it, what is seen of it. */
interface World {
  server: Parameters<typeof nextStep>[0];
  observed: Observation;
  was_asked: boolean;
  now: Date;
  is_over: boolean;
  starts: number;
}

/** How the server and the world behave where it is not for us to say. */
const character = fc.record({
  ends_when_asked: fc.boolean(),
  can_be_started: fc.boolean(),
  /** We are killed after a step was done and before it was noted. */
  notes: fc.boolean(),
});
type Character = typeof character extends fc.Arbitrary<infer Value> ? Value : never;

const observation: fc.Arbitrary<Observation> = fc.oneof(
  fc.constant<Observation>({ is: 'absent' }),
  fc.constant(RUNNING),
  fc.constant(KILLED),
  fc.record({ is: fc.constant('ended'), exit_code: fc.nat(255), exit_signal: fc.constant(null) }),
  fc.record({ is: fc.constant('ended'), exit_code: fc.constant(null), exit_signal: fc.constant('SIGSEGV') }),
);

const ending = fc.integer({ min: -2 * KILL_TIMEOUT_MS, max: 0 }).map((ago_ms) => ({
  destroyed_at: new Date(START + ago_ms),
  kill_at: new Date(START + ago_ms + KILL_TIMEOUT_MS),
  failure: null,
}));
const failed = fc.constant({ destroyed_at: new Date(START), kill_at: null, failure: 'the archive is broken' });
const wanted = fc.constant({ destroyed_at: null, kill_at: null, failure: null });

function worldOf(wish: fc.Arbitrary<Omit<World['server'], 'process'>>): fc.Arbitrary<World> {
  return fc
    .record({ wish, process: fc.constantFrom(null, PROCESS), observed: observation, was_asked: fc.boolean() })
    .map(({ wish: decided, process, ...seen }) => ({
      ...seen,
      server: { ...decided, process },
      now: new Date(START),
      is_over: false,
      starts: 0,
    }));
}

const decide = ({ server, observed, now, was_asked }: World): Step => nextStep(server, observed, { now, was_asked });

/** What a step makes of the world, as reconcile and any runtime do it. */
function perform(world: World, step: Step, { ends_when_asked, can_be_started, notes }: Character): World {
  const { server, observed, now } = world;
  switch (step.do) {
    case 'wait':
      return { ...world, now: new Date(now.getTime() + KILL_TIMEOUT_MS) };
    case 'start': {
      if (!can_be_started)
        return { ...world, server: { ...server, destroyed_at: now, failure: 'it cannot be started' } };
      // A runtime does not start what runs.
      const starts = observed.is === 'running' ? world.starts : world.starts + 1;
      return { ...world, starts, observed: RUNNING, server: notes ? { ...server, process: PROCESS } : server };
    }
    case 'adopt':
      return { ...world, server: { ...server, process: step.process } };
    case 'stop':
      return { ...world, was_asked: true, observed: ends_when_asked ? EXITED : observed };
    case 'kill':
      return { ...world, observed: KILLED };
    case 'finish':
      return { ...world, observed: { is: 'absent' }, is_over: true };
  }
}

describe('wherever a server stands', () => {
  test('it comes to its end when it is to end, or has failed, and is never started on the way', () => {
    fc.assert(
      fc.property(worldOf(fc.oneof(ending, failed)), character, (begin, nature) => {
        let world = begin;
        for (let steps = 0; steps < STEPS_MAX && !world.is_over; steps += 1)
          world = perform(world, decide(world), nature);
        expect(world.is_over).toBe(true);
        expect(world.starts).toBe(0);
      }),
      { numRuns: 1_000 },
    );
  });

  test('it is started once at most when it is wanted, and left alone as long as it runs', () => {
    fc.assert(
      fc.property(worldOf(wanted), character, (begin, nature) => {
        let world = begin;
        for (let steps = 0; steps < STEPS_MAX && !world.is_over; steps += 1)
          world = perform(world, decide(world), nature);
        expect(world.starts).toBeLessThanOrEqual(1);
        if (!world.is_over) expect(decide(world)).toEqual({ do: 'wait' });
      }),
      { numRuns: 1_000 },
    );
  });

  test('a step that is taken twice, or again after a restart, makes no difference', () => {
    fc.assert(
      fc.property(worldOf(fc.oneof(ending, failed, wanted)), character, (world, nature) => {
        const step = decide(world);
        if (step.do === 'wait') return;
        const once = perform(world, step, nature);
        const twice = perform(once, step, nature);
        expect({ ...twice, starts: once.starts }).toEqual(once);
        if (once.is_over) return;
        // Whoever starts anew has asked nobody yet: asking again is all that is done more.
        const anew = decide({ ...once, was_asked: false });
        expect([decide(once), { do: 'stop' }]).toContainEqual(anew);
      }),
      { numRuns: 1_000 },
    );
  });
});
