import { describe, expect, test } from 'bun:test';
import { existsSync, readFileSync } from 'node:fs';
import { nextStep } from '../../../src/features/servers/rules.ts';
import type { Observation } from '../../../src/features/servers/runtimes/runtime.ts';

/** The page whose tables this file compares with the code. */
const PAGE = readFileSync('docs/servers.md', 'utf8');

const NOW = new Date('2026-03-01T12:00:00Z');
const after = (ms: number) => new Date(NOW.getTime() + ms);
const IDENTITY = { name: 'game-7' };

/** What the row of a server says, and whether this process has asked it to end. */
const NEW = {
  identity: null,
  started_at: null,
  destroyed_at: null,
  kill_at: null,
  failure: null,
  was_stop_requested: false,
};
const RUNNING = { ...NEW, identity: IDENTITY, started_at: after(-1) };
const STATES = {
  waiting: NEW,
  starting: { ...NEW, identity: IDENTITY },
  running: RUNNING,
  ending: { ...RUNNING, destroyed_at: after(-1), kill_at: after(1) },
  stopping: { ...RUNNING, destroyed_at: after(-1), kill_at: after(1), was_stop_requested: true },
  overdue: { ...RUNNING, destroyed_at: after(-1), kill_at: NOW, was_stop_requested: true },
  failed: { ...RUNNING, destroyed_at: after(-1), failure: 'it exceeded its 8 MiB of disk' },
};

const OBSERVED: Record<string, Observation> = {
  absent: { is: 'absent' },
  pending: { is: 'pending', identity: IDENTITY, reason: 'its image is unpacked' },
  running: { is: 'running', identity: IDENTITY, host: 'play.example.com' },
  'unreachable for less than a minute': { is: 'unreachable', for_ms: 59_999 },
  'unreachable for a minute': { is: 'unreachable', for_ms: 60_000 },
  'ended with a status': { is: 'ended', exit_code: 0, exit_signal: null },
  'ended without a status': { is: 'ended', exit_code: null, exit_signal: null },
};

/** Returns the cells of the table under a heading, without the line below its head. */
function tableUnder(heading: string): string[][] {
  const section = PAGE.slice(PAGE.indexOf(`## ${heading}`)).split('\n## ')[0] ?? '';
  const lines = section.split('\n').filter((line) => line.startsWith('|'));
  const cells = lines.map((line) =>
    line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );
  return cells.filter((_, index) => index !== 1);
}

function stepOf(state: string, observed: string): string {
  const { was_stop_requested, ...row } = STATES[state as keyof typeof STATES];
  const seen = OBSERVED[observed];
  if (!seen) throw new Error(`nothing is observed as "${observed}"`);
  const step = nextStep(row, seen, { now: NOW, was_stop_requested, reported: undefined });
  if (step.do !== 'finish') return step.do;
  if (step.failure?.includes('was lost')) return 'finish: lost';
  return step.exit_signal === 'SIGKILL' ? 'finish: killed' : 'finish';
}

describe('servers: the table of steps in docs/servers.md', () => {
  const [[, ...observed] = [], ...rows] = tableUnder('Steps');

  test('has every state and everything that a runtime may observe', () => {
    expect(observed).toEqual(Object.keys(OBSERVED));
    expect(rows.map(([state]) => state)).toEqual(Object.keys(STATES));
  });

  test.each(rows)('is what the code does in the state "%s"', (state, ...steps) => {
    expect(steps).toEqual(observed.map((one) => stepOf(state ?? '', one)));
  });
});

describe('servers: the invariants in docs/servers.md', () => {
  const [, ...rows] = tableUnder('Invariants');

  test('are numbered', () => {
    expect(rows).not.toBeEmpty();
    expect(rows.map(([number]) => number)).toEqual(rows.map((_, index) => `I-G${index + 1}`));
  });

  test.each(rows)('%s: the code and the tests that it names exist', (_, _invariant, enforced = '', tests = '') => {
    const paths = (cell: string, folder: string) =>
      [...cell.matchAll(/`([\w/.-]+\.ts)`/g)].map(([, file]) => `${folder}/${file}`);
    const named = [...paths(enforced, 'src/features/servers'), ...paths(tests, 'tests')];
    expect(named.length).toBeGreaterThan(1);
    expect(named.filter((path) => !existsSync(path))).toEqual([]);
  });
});
