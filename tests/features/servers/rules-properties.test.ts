import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { nextStep, type Step } from '../../../src/features/servers/rules.ts';
import type { Observation } from '../../../src/features/servers/runtimes/runtime.ts';

const START = new Date('2026-03-01T12:00:00Z').getTime();
const KILL_TIMEOUT_MS = 1_000;
/** Longer than the wait for an unreachable server. */
const WAIT_MS = 61_000;
/** More than any path to the end takes. */
const STEPS_MAX = 12;
const IDENTITY = { name: 'game-7' };
const PENDING: Observation = { is: 'pending', identity: IDENTITY, reason: 'its image is fetched' };
const RUNNING: Observation = { is: 'running', identity: IDENTITY, host: 'play.example.com' };
const EXITED: Observation = { is: 'ended', exit_code: 0, exit_signal: null };
const KILLED: Observation = { is: 'ended', exit_code: null, exit_signal: null };

/** A machine with one server: its row, and its observed state. */
interface World {
  server: Parameters<typeof nextStep>[0];
  observed: Observation;
  was_stop_requested: boolean;
  reported: string | undefined;
  now: Date;
  is_over: boolean;
  starts: number;
}

/** How the server and its machine behave. */
const characters = fc.record({
  ends_when_asked: fc.boolean(),
  can_be_started: fc.boolean(),
  /** A start takes the runtime a while. */
  is_slow: fc.boolean(),
  /** False if the service is killed after a start and before it is recorded. */
  records_start: fc.boolean(),
});
type Character = typeof characters extends fc.Arbitrary<infer Value> ? Value : never;

const observation: fc.Arbitrary<Observation> = fc.oneof(
  fc.constant<Observation>({ is: 'absent' }),
  fc.constant(RUNNING),
  fc.constant(PENDING),
  fc.constant(KILLED),
  fc.nat(2 * KILL_TIMEOUT_MS).map((for_ms): Observation => ({ is: 'unreachable', for_ms })),
  fc.record({ is: fc.constant('ended'), exit_code: fc.nat(255), exit_signal: fc.constant(null) }),
  fc.record({ is: fc.constant('ended'), exit_code: fc.constant(null), exit_signal: fc.constant('SIGSEGV') }),
);

const ending = fc.integer({ min: -2 * KILL_TIMEOUT_MS, max: 0 }).map((ago_ms) => ({
  destroyed_at: new Date(START + ago_ms),
  kill_at: new Date(START + ago_ms + KILL_TIMEOUT_MS),
  failure: null,
}));
const failed = fc.constant({ destroyed_at: new Date(START), kill_at: null, failure: 'the archive is broken' });
/** The row of a server before its start, while it is pending, and while it runs. */
const RECORDED = [
  { identity: null, started_at: null },
  { identity: IDENTITY, started_at: null },
  { identity: IDENTITY, started_at: new Date(START - 1) },
];
const wanted = fc.constant({ destroyed_at: null, kill_at: null, failure: null });

function worldOf(wish: fc.Arbitrary<Omit<World['server'], 'identity' | 'started_at'>>): fc.Arbitrary<World> {
  return fc
    .record({ wish, recorded: fc.constantFrom(...RECORDED), observed: observation, was_stop_requested: fc.boolean() })
    .map(({ wish: decided, recorded, ...seen }) => ({
      ...seen,
      reported: undefined,
      server: { ...decided, ...recorded },
      now: new Date(START),
      is_over: false,
      starts: 0,
    }));
}

const decide = ({ server, observed, ...memory }: World): Step => nextStep(server, observed, memory);

/** Applies a step to the server and its machine, as reconcile and any runtime do. */
function perform(
  world: World,
  step: Step,
  { ends_when_asked, can_be_started, is_slow, records_start }: Character,
): World {
  const { server, observed, now } = world;
  const running = { identity: IDENTITY, started_at: now };
  switch (step.do) {
    case 'wait': {
      const later = { ...world, now: new Date(now.getTime() + WAIT_MS) };
      return observed.is === 'pending' ? { ...later, observed: RUNNING } : later;
    }
    case 'report':
      return { ...world, reported: step.reason };
    case 'start': {
      if (!can_be_started)
        return { ...world, server: { ...server, destroyed_at: now, failure: 'it cannot be started' } };
      // A runtime does not start a server twice.
      const is_new = observed.is !== 'running' && observed.is !== 'pending';
      const starts = is_new ? world.starts + 1 : world.starts;
      const recorded = is_slow ? { identity: IDENTITY } : running;
      return {
        ...world,
        starts,
        observed: is_slow ? PENDING : RUNNING,
        server: records_start ? { ...server, ...recorded } : server,
      };
    }
    case 'adopt':
      return {
        ...world,
        server: { ...server, ...(step.accepted.is === 'running' ? running : { identity: IDENTITY }) },
      };
    case 'stop':
      return { ...world, was_stop_requested: true, observed: ends_when_asked ? EXITED : observed };
    case 'kill':
      return { ...world, observed: KILLED };
    case 'finish':
      return { ...world, observed: { is: 'absent' }, is_over: true };
  }
}

describe('servers: from any state, the steps', () => {
  test('end a server that was destroyed or has failed, without starting it on the way', () => {
    fc.assert(
      fc.property(worldOf(fc.oneof(ending, failed)), characters, (begin, character) => {
        let world = begin;
        for (let steps = 0; steps < STEPS_MAX && !world.is_over; steps += 1)
          world = perform(world, decide(world), character);
        expect(world.is_over).toBe(true);
        expect(world.starts).toBe(0);
      }),
      { numRuns: 1_000 },
    );
  });

  test('start a wanted server at most once, and leave it alone while it runs', () => {
    fc.assert(
      fc.property(worldOf(wanted), characters, (begin, character) => {
        let world = begin;
        for (let steps = 0; steps < STEPS_MAX && !world.is_over; steps += 1)
          world = perform(world, decide(world), character);
        expect(world.starts).toBeLessThanOrEqual(1);
        if (!world.is_over) expect(decide(world)).toEqual({ do: 'wait' });
      }),
      { numRuns: 1_000 },
    );
  });

  test('may be taken twice, or again after a restart, without another effect', () => {
    fc.assert(
      fc.property(worldOf(fc.oneof(ending, failed, wanted)), characters, (world, character) => {
        const step = decide(world);
        if (step.do === 'wait') return;
        const once = perform(world, step, character);
        const twice = perform(once, step, character);
        expect({ ...twice, starts: once.starts }).toEqual(once);
        if (once.is_over) return;
        // A restarted service has sent no SIGTERM yet, so it may send one more.
        const anew = decide({ ...once, was_stop_requested: false });
        expect([decide(once), { do: 'stop' }]).toContainEqual(anew);
      }),
      { numRuns: 1_000 },
    );
  });
});
