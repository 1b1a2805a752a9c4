import { describe, expect, test } from 'bun:test';
import { nextStep } from '../../../src/features/servers/rules.ts';

const NOW = new Date('2026-03-01T12:00:00Z');
const EARLIER = new Date(NOW.getTime() - 1);
const LATER = new Date(NOW.getTime() + 1);
const PROCESS = { pid: 4_711, start_ticks: 1, boot_id: 'boot' };
const LOST = 'the process was lost: the machine restarted, or another program ended it';

const WANTED = { process: null, destroyed_at: null, kill_at: null, failure: null };
const NOTED = { ...WANTED, process: PROCESS };
/** Their time to end by themselves is not over. */
const ASKED = { destroyed_at: EARLIER, kill_at: LATER };
const OVERDUE = { destroyed_at: EARLIER, kill_at: NOW };
const REASON = { failure: 'the archive is broken' };
const FAILED = { destroyed_at: EARLIER, ...REASON };

const ABSENT = { is: 'absent' } as const;
const RUNNING = { is: 'running', process: PROCESS } as const;
const UNSEEN_END = { is: 'ended', exit_code: null, exit_signal: null } as const;
const exited = (exit_code: number) => ({ is: 'ended', exit_code, exit_signal: null }) as const;
const signalled = (exit_signal: string) => ({ is: 'ended', exit_code: null, exit_signal }) as const;

const finish = (end: { exit_code?: number; exit_signal?: string; failure?: string } = {}) =>
  ({ do: 'finish', exit_code: null, exit_signal: null, failure: null, ...end }) as const;

describe('servers: the next step', () => {
  const CASES = [
    ['one that is wanted and not there is started', WANTED, ABSENT, { do: 'start' }],
    ['one that was destroyed before it began ends', { ...WANTED, ...ASKED }, ABSENT, finish()],
    ['one that could not be started ends with the reason', { ...WANTED, ...FAILED }, ABSENT, finish(REASON)],
    ['one of which there is no trace any more was lost', NOTED, ABSENT, finish({ failure: LOST })],
    ['one that was lost while it was asked says so', { ...NOTED, ...ASKED }, ABSENT, finish({ failure: LOST })],

    ['one that runs unnoted is adopted', WANTED, RUNNING, { do: 'adopt', process: PROCESS }],
    ['so is one that is to end', { ...WANTED, ...OVERDUE }, RUNNING, { do: 'adopt', process: PROCESS }],
    ['one that runs as wanted is left alone', NOTED, RUNNING, { do: 'wait' }],
    ['one that is to end is asked', { ...NOTED, ...ASKED }, RUNNING, { do: 'stop' }],
    ['one whose time is over is killed', { ...NOTED, ...OVERDUE }, RUNNING, { do: 'kill' }],
    ['one that failed has no time to wait for', { ...NOTED, ...FAILED }, RUNNING, { do: 'kill' }],

    ['one that came to its end keeps its exit code', NOTED, exited(0), finish({ exit_code: 0 })],
    ['one that crashed keeps its exit code', NOTED, exited(1), finish({ exit_code: 1 })],
    ['one that a signal ended keeps the signal', NOTED, signalled('SIGSEGV'), finish({ exit_signal: 'SIGSEGV' })],
    ['one that ended unnoted is not started again', WANTED, exited(3), finish({ exit_code: 3 })],
    ['nor is one that a signal ended unnoted', WANTED, signalled('SIGBUS'), finish({ exit_signal: 'SIGBUS' })],
    ['one that perhaps never ran is started', WANTED, UNSEEN_END, { do: 'start' }],
    ['unless it is to end', { ...WANTED, ...ASKED }, UNSEEN_END, finish({ failure: LOST })],
    ['one whose end nobody saw was lost', NOTED, UNSEEN_END, finish({ failure: LOST })],
    ['even while it was asked', { ...NOTED, ...ASKED }, UNSEEN_END, finish({ failure: LOST })],
    ['but was killed when its time is over', { ...NOTED, ...OVERDUE }, UNSEEN_END, finish({ exit_signal: 'SIGKILL' })],
    ['what it ended with counts more than that', { ...NOTED, ...OVERDUE }, exited(0), finish({ exit_code: 0 })],
    ['a first reason is kept', { ...NOTED, ...FAILED }, UNSEEN_END, finish(REASON)],
    ['also beside an exit code', { ...NOTED, ...FAILED }, exited(1), finish({ ...REASON, exit_code: 1 })],
  ] as const;

  test.each(CASES)('%s', (_, server, observed, step) => {
    expect(nextStep(server, observed, { now: NOW, was_asked: false })).toEqual(step);
  });

  test('one that has been asked is not asked again', () => {
    const asked = { ...NOTED, ...ASKED };
    expect(nextStep(asked, RUNNING, { now: NOW, was_asked: true })).toEqual({ do: 'wait' });
    expect(nextStep(asked, RUNNING, { now: LATER, was_asked: true })).toEqual({ do: 'kill' });
  });
});
