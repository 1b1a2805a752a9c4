import { describe, expect, test } from 'bun:test';
import { nextStep } from '../../../src/features/servers/rules.ts';

const NOW = new Date('2026-03-01T12:00:00Z');
const EARLIER = new Date(NOW.getTime() - 1);
const LATER = new Date(NOW.getTime() + 1);
const IDENTITY = { name: 'game-7' };
const LOST = 'the process was lost: the machine restarted, or another program ended it';

const WANTED = { identity: null, started_at: null, destroyed_at: null, kill_at: null, failure: null };
/** Recorded as running. */
const STARTED = { ...WANTED, identity: IDENTITY, started_at: EARLIER };
/** Recorded as accepted by the runtime, and not yet as running. */
const ACCEPTED = { ...WANTED, identity: IDENTITY };
/** To end, with time left to do so by itself. */
const ASKED = { destroyed_at: EARLIER, kill_at: LATER };
const OVERDUE = { destroyed_at: EARLIER, kill_at: NOW };
const REASON = { failure: 'the archive is broken' };
const FAILED = { destroyed_at: EARLIER, ...REASON };

const ABSENT = { is: 'absent' } as const;
const RUNNING = { is: 'running', identity: IDENTITY, host: 'play.example.com' } as const;
const PENDING = { is: 'pending', identity: IDENTITY, reason: 'its image is fetched' } as const;
const STOPPABLE = { ...PENDING, can_stop: true } as const;
const KILL = { do: 'kill' } as const;
const unreachable = (for_ms: number) => ({ is: 'unreachable', for_ms }) as const;
const UNSEEN_END = { is: 'ended', exit_code: null, exit_signal: null } as const;
const exited = (exit_code: number) => ({ is: 'ended', exit_code, exit_signal: null }) as const;
const signalled = (exit_signal: string) => ({ is: 'ended', exit_code: null, exit_signal }) as const;
const DRAINED = { reason: 'its pod was deleted', is_disruption: true } as const;
const WITH_MACHINE = { failure: DRAINED.reason, has_lost_machine: true };

interface End {
  exit_code?: number;
  exit_signal?: string;
  failure?: string;
  has_lost_machine?: boolean;
}
const finish = (end: End = {}) =>
  ({ do: 'finish', exit_code: null, exit_signal: null, failure: null, has_lost_machine: false, ...end }) as const;
const KILLED = finish({ exit_signal: 'SIGKILL' });

describe('servers: the next step', () => {
  const CASES = [
    ['starts a wanted server that does not run', WANTED, ABSENT, { do: 'start' }],
    ['ends one that was destroyed before its start', { ...WANTED, ...ASKED }, ABSENT, finish()],
    ['ends one that could not be started, with the reason', { ...WANTED, ...FAILED }, ABSENT, finish(REASON)],
    ['ends one without a trace as lost', STARTED, ABSENT, finish({ failure: LOST })],
    ['ends one without a trace that was ending as killed', { ...STARTED, ...ASKED }, ABSENT, KILLED],
    ['ends one without a trace that has failed, with the reason', { ...STARTED, ...FAILED }, ABSENT, finish(REASON)],

    ['ends one that was accepted and disappeared as lost', ACCEPTED, ABSENT, finish({ failure: LOST })],
    ['ends one that was destroyed before it ran, and not as lost', { ...ACCEPTED, ...ASKED }, ABSENT, finish()],

    ['adopts a pending one that was not recorded', WANTED, PENDING, { do: 'adopt', accepted: PENDING }],
    ['reports why one is pending', ACCEPTED, PENDING, { do: 'report', reason: PENDING.reason }],
    ['kills a pending one that is to end', { ...ACCEPTED, ...ASKED }, PENDING, { do: 'kill' }],
    ['kills one that is to end and was not recorded', { ...WANTED, ...ASKED }, PENDING, { do: 'kill' }],
    ['sends SIGTERM to a pending one whose program runs', { ...ACCEPTED, ...ASKED }, STOPPABLE, { do: 'stop' }],
    ['kills a pending one whose program runs and whose time is over', { ...ACCEPTED, ...OVERDUE }, STOPPABLE, KILL],
    ['waits for a started one whose address is being read', STARTED, PENDING, { do: 'wait' }],
    ['waits for one that is to end until it can be asked', { ...STARTED, ...ASKED }, PENDING, { do: 'wait' }],
    ['sends SIGTERM to one that is to end and can be asked', { ...STARTED, ...ASKED }, STOPPABLE, { do: 'stop' }],
    ['kills a started one whose time is over', { ...STARTED, ...OVERDUE }, PENDING, KILL],
    ['kills a started one that has failed', { ...STARTED, ...FAILED }, PENDING, KILL],
    ['adopts one that was pending and runs', ACCEPTED, RUNNING, { do: 'adopt', accepted: RUNNING }],

    ['waits for an unreachable one', STARTED, unreachable(59_999), { do: 'wait' }],
    ['kills one that has been unreachable for a minute', STARTED, unreachable(60_000), { do: 'kill' }],
    ['waits for an unreachable one while it is to end', { ...STARTED, ...ASKED }, unreachable(0), { do: 'wait' }],
    ['kills an unreachable one whose time is over', { ...STARTED, ...OVERDUE }, unreachable(0), { do: 'kill' }],
    [
      'kills an unreachable one that failed, without waiting',
      { ...STARTED, ...FAILED },
      unreachable(0),
      { do: 'kill' },
    ],

    ['adopts a running one whose start was not recorded', WANTED, RUNNING, { do: 'adopt', accepted: RUNNING }],
    ['adopts one that is to end, too', { ...WANTED, ...OVERDUE }, RUNNING, { do: 'adopt', accepted: RUNNING }],
    ['is nothing for one that runs as wanted', STARTED, RUNNING, { do: 'wait' }],
    ['sends SIGTERM to one that is to end', { ...STARTED, ...ASKED }, RUNNING, { do: 'stop' }],
    ['kills one whose time is over', { ...STARTED, ...OVERDUE }, RUNNING, { do: 'kill' }],
    ['kills one that has failed without waiting', { ...STARTED, ...FAILED }, RUNNING, { do: 'kill' }],
    ['kills one that failed while it was ending', { ...STARTED, ...ASKED, ...REASON }, RUNNING, { do: 'kill' }],

    ['ends one that has exited, with its exit code', STARTED, exited(0), finish({ exit_code: 0 })],
    ['ends one that has crashed, with its exit code', STARTED, exited(1), finish({ exit_code: 1 })],
    [
      'ends one that a signal ended, with the signal',
      STARTED,
      signalled('SIGSEGV'),
      finish({ exit_signal: 'SIGSEGV' }),
    ],
    ['does not start one that ended before its start was recorded', WANTED, exited(3), finish({ exit_code: 3 })],
    [
      'does not start one that a signal ended before its start was recorded',
      WANTED,
      signalled('SIGBUS'),
      finish({ exit_signal: 'SIGBUS' }),
    ],
    ['starts one that may never have run', WANTED, UNSEEN_END, { do: 'start' }],
    ['ends one that may never have run and is to end', { ...WANTED, ...ASKED }, UNSEEN_END, finish()],
    ['ends one without a known end as lost', STARTED, UNSEEN_END, finish({ failure: LOST })],
    ['ends one that was ended before it ran, and not as lost', { ...ACCEPTED, ...ASKED }, UNSEEN_END, finish()],
    ['ends one without a known end that was ending as killed', { ...STARTED, ...ASKED }, UNSEEN_END, KILLED],
    ['ends one without a known end whose time is over as killed', { ...STARTED, ...OVERDUE }, UNSEEN_END, KILLED],
    ['prefers a known end of one whose time is over', { ...STARTED, ...OVERDUE }, exited(0), finish({ exit_code: 0 })],
    [
      'ends one that the machine ended, with the reason',
      STARTED,
      { ...signalled('SIGKILL'), reason: 'memory' },
      finish({ exit_signal: 'SIGKILL', failure: 'memory' }),
    ],
    [
      'ends one that the machine ended without an exit status, with the reason',
      STARTED,
      { ...UNSEEN_END, reason: 'memory' },
      finish({ failure: 'memory' }),
    ],
    [
      'gives no reason of the machine for one that it killed itself',
      { ...STARTED, ...OVERDUE },
      { ...UNSEEN_END, reason: 'memory' },
      finish({ exit_signal: 'SIGKILL' }),
    ],
    [
      'ends one that was lost with its machine, with the reason',
      STARTED,
      { ...UNSEEN_END, ...DRAINED },
      finish(WITH_MACHINE),
    ],
    [
      'ends one that its machine asked to end, with the reason beside the exit code',
      STARTED,
      { ...exited(0), ...DRAINED },
      finish({ ...WITH_MACHINE, exit_code: 0 }),
    ],
    [
      'records no loss of the machine for an end that it requested',
      { ...STARTED, ...ASKED },
      { ...signalled('SIGTERM'), ...DRAINED },
      finish({ exit_signal: 'SIGTERM' }),
    ],
    [
      'records no loss of the machine for a kill that it requested',
      { ...STARTED, ...OVERDUE },
      { ...UNSEEN_END, ...DRAINED },
      finish({ exit_signal: 'SIGKILL' }),
    ],
    [
      'ends one that was lost with its machine while it was ending, with the reason',
      { ...STARTED, ...ASKED },
      { ...UNSEEN_END, ...DRAINED },
      finish(WITH_MACHINE),
    ],
    [
      'keeps the first reason before a loss',
      { ...STARTED, ...FAILED },
      { ...exited(0), ...DRAINED },
      finish({ ...REASON, exit_code: 0 }),
    ],
    ['keeps the first reason', { ...STARTED, ...FAILED }, UNSEEN_END, finish(REASON)],
    [
      'keeps the first reason beside an exit code',
      { ...STARTED, ...FAILED },
      exited(1),
      finish({ ...REASON, exit_code: 1 }),
    ],
  ] as const;

  test.each(CASES)('%s', (_, server, observed, step) => {
    expect(nextStep(server, observed, { now: NOW, was_stop_requested: false, reported: undefined })).toEqual(step);
  });

  test('sends SIGTERM once', () => {
    const ending = { ...STARTED, ...ASKED };
    const memory = { was_stop_requested: true, reported: undefined };
    expect(nextStep(ending, RUNNING, { now: NOW, ...memory })).toEqual({ do: 'wait' });
    expect(nextStep(ending, RUNNING, { now: LATER, ...memory })).toEqual({ do: 'kill' });
  });

  test('reports a reason once, and then the next reason', () => {
    const memory = { now: NOW, was_stop_requested: false, reported: PENDING.reason };
    expect(nextStep(ACCEPTED, PENDING, memory)).toEqual({ do: 'wait' });
    const next = { ...PENDING, reason: 'its image is unpacked' };
    expect(nextStep(ACCEPTED, next, memory)).toEqual({ do: 'report', reason: next.reason });
  });
});
