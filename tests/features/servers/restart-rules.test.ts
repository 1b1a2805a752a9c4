import { describe, expect, test } from 'bun:test';
import { planRestart, requestedPorts } from '../../../src/features/servers/restarts.ts';
import { assignPorts, portsAt, portsInside } from '../../../src/features/servers/server-port-rules.ts';
import type { ServerPort } from '../../../src/features/servers/tables.ts';

const NOW = new Date('2026-03-01T12:00:00Z');
const before = (ms: number) => new Date(NOW.getTime() - ms);
const MINUTE_MS = 60_000;

const RAN = {
  ports: {},
  started_at: before(1_000),
  destroyed_at: null,
  kill_at: null,
  exit_code: null,
  exit_signal: null,
  failure: null,
  has_lost_machine: false,
  restarts_max: 10,
  restart_count: 0,
};
const CRASHED = { ...RAN, exit_code: 3 };
const REQUESTED = { destroyed_at: before(500), kill_at: before(-29_500) };

/** Returns which restart in a row follows an end, and after which pause in ms; undefined for none. */
function restartAfter(end: typeof RAN | Parameters<typeof planRestart>[0]) {
  const restart = planRestart(end, NOW);
  return restart && [restart.restart_count, restart.start_after.getTime() - NOW.getTime()];
}

describe('servers: a restart', () => {
  const CASES: [string, Parameters<typeof planRestart>[0], [number, number] | undefined][] = [
    ['follows no end of a server that is never restarted', { ...CRASHED, restarts_max: null }, undefined],
    ['follows no good end', { ...RAN, exit_code: 0 }, undefined],
    ['follows no end that was requested', { ...CRASHED, ...REQUESTED }, undefined],
    [
      'follows no lost machine of a server whose end was requested',
      { ...RAN, ...REQUESTED, failure: 'its machine was lost', has_lost_machine: true },
      undefined,
    ],
    [
      'follows no server that could not start or exceeded a limit',
      { ...RAN, destroyed_at: before(10), failure: 'it exceeded its 8 MiB of disk' },
      undefined,
    ],
    ['follows an exit code', CRASHED, [1, 1_000]],
    ['follows a signal', { ...RAN, exit_signal: 'SIGSEGV' }, [1, 1_000]],
    ['follows a process that was lost', { ...RAN, failure: 'the process was lost' }, [1, 1_000]],
    ['follows a lost machine', { ...RAN, failure: 'its machine was lost', has_lost_machine: true }, [1, 1_000]],
    ['follows a server that crashed before its start was recorded', { ...CRASHED, started_at: null }, [1, 1_000]],
    ['reaches the maximum', { ...CRASHED, restart_count: 9 }, [10, 60_000]],
    ['does not exceed the maximum', { ...CRASHED, restart_count: 10 }, undefined],
    [
      'counts up if the server ran for less than 10 minutes',
      { ...CRASHED, restart_count: 3, started_at: before(599_999) },
      [4, 8_000],
    ],
    [
      'counts anew if the server ran for 10 minutes',
      { ...CRASHED, restart_count: 10, started_at: before(10 * MINUTE_MS) },
      [1, 1_000],
    ],
  ];
  test.each(CASES)('%s', (_, end, expected) => {
    expect(restartAfter(end)).toEqual(expected);
  });

  test('waits twice as long each time, and a minute at most', () => {
    const pauses = [0, 1, 2, 3, 4, 5, 6, 7, 999].map(
      (restart_count) => restartAfter({ ...CRASHED, restart_count, restarts_max: 1_000 })?.[1],
    );
    expect(pauses).toEqual([1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000, 60_000]);
  });

  test('requests the ports that its first server requested, for every runtime', () => {
    const requested: Record<string, ServerPort> = {
      page: { protocol: 'http', routing: 'game_guard', internal_port: 80 },
      // The machine happens to give it this number.
      same: { protocol: 'udp', routing: 'game_guard', internal_port: 26_001 },
      any: { protocol: 'tcp_tls', routing: 'game_guard', presence: 'gateway' },
      range: { protocol: 'udp', routing: 'host', port_range: { min: 5_000, max: 5_010 } },
    };
    const assigned = assignPorts(requested, [26_000, 26_001, 26_002, 26_003], new Set(['tcp_tls']));
    const place = { server_id: crypto.randomUUID(), host: 'play.example' };
    expect(requestedPorts(assigned)).toEqual(requested);
    expect(requestedPorts(portsAt(place, assigned))).toEqual(requested);
    expect(requestedPorts(portsAt(place, portsInside(portsAt(place, assigned))))).toEqual(requested);
  });
});
