import { describe, expect, test } from 'bun:test';
import type { ServiceEvent } from '../../src/platform/events.ts';
import { keepEvents } from '../../src/platform/kept-events.ts';

const served = { ray_id: 'r', method: 'GET', route: '/', status: 200, duration_ms: 1 };

describe('kept events', () => {
  test('are emitted and counted, and only the latest thousand that are not for debugging are kept', () => {
    const emitted: ServiceEvent[] = [];
    const events = keepEvents({ emit: (event) => void emitted.push(event) });
    for (let number = 0; number < 1_005; number += 1) events.emit({ event: 'log_lines_dropped', count: number });
    events.emit({ event: 'request_served', ...served });
    expect([emitted.length, events.count('log_lines_dropped'), events.count('request_served')]).toEqual([
      1_006, 1_005, 1,
    ]);
    expect(events.count('feed_reconnected')).toBe(0);
    const listed = events.list('info', 5_000);
    expect([listed.length, listed[0]?.details, listed.at(-1)?.details]).toEqual([
      1_000,
      { count: 5 },
      { count: 1_004 },
    ]);
    expect(listed.map(({ number }) => number)).toEqual(Array.from({ length: 1_000 }, (_, index) => index + 5));
  });

  test('of one level are not replaced by those of another', () => {
    const events = keepEvents({ emit() {} });
    events.emit({ event: 'log_lines_dropped', count: 1 });
    for (let number = 0; number < 1_005; number += 1) events.emit({ event: 'upload_abandoned', upload_id: 'u' });
    events.emit({ event: 'log_lines_dropped', count: 2 });
    expect(events.list('error', 10)).toMatchObject([
      { number: 0, level: 'error', details: { count: 1 } },
      { number: 1_006, level: 'error', details: { count: 2 } },
    ]);
    expect(events.list('info', 5_000)).toHaveLength(1_002);
  });

  test('are described when they are emitted, so that they keep no error', () => {
    const events = keepEvents({ emit() {} });
    const cause = new Error('before');
    events.emit({ event: 'loop_failed', loop: 'l', failures: 1, cause });
    cause.message = 'after';
    expect(events.list('info', 1)).toMatchObject([{ details: { cause: { message: 'before' } } }]);
  });

  test('have details of eight thousand characters at most', () => {
    const events = keepEvents({ emit() {} });
    let cause = new Error('x'.repeat(5_000));
    for (let depth = 0; depth < 8; depth += 1) cause = new Error('x'.repeat(5_000), { cause });
    events.emit({ event: 'loop_failed', loop: 'l', failures: 1, cause });
    const [listed] = events.list('info', 1);
    expect(listed?.details).toEqual({ cut: expect.stringMatching(/^\{"loop":"l","failures":1,"cause":/) });
    expect(listed?.details.cut).toHaveLength(8_000);
  });

  test('are listed from a level on, the latest ones in order', () => {
    const events = keepEvents({ emit() {} });
    events.emit({ event: 'upload_abandoned', upload_id: 'u' });
    events.emit({ event: 'feed_reconnected' });
    events.emit({ event: 'log_lines_dropped', count: 1 });
    const namesOf = (level: 'info' | 'warn' | 'error', count_max = 10) =>
      events.list(level, count_max).map(({ level, event }) => `${level} ${event}`);
    expect(namesOf('info')).toEqual(['info upload_abandoned', 'warn feed_reconnected', 'error log_lines_dropped']);
    expect(namesOf('warn')).toEqual(['warn feed_reconnected', 'error log_lines_dropped']);
    expect(namesOf('info', 1)).toEqual(['error log_lines_dropped']);
  });

  test('have no secrets: in causes, in lines of servers, and in any other text', () => {
    const events = keepEvents({ emit() {} });
    const secret = 'eyJ0eXAi.c2VjcmV0.c2lnbmF0dXJl';
    events.emit({
      event: 'request_failed',
      ...served,
      cause: new Error('a', { cause: new Error('postgres://user:hidden@host') }),
    });
    const last_lines = [`token ${secret}`];
    events.emit({ event: 'lobby_not_ready', lobby_id: 'l', server_id: 's', hint: 'h', last_lines });
    events.emit({ event: 'database_awaited', reason: `password=hidden ${secret}`, for_ms: 1 });
    const listed = events.list('info', 10);
    expect(listed.map(({ details }) => details)).toMatchObject([
      { route: '/', cause: { message: 'a', cause: { message: 'postgres://[redacted]@host' } } },
      { last_lines: ['token [token]'] },
      { reason: 'password=[redacted] [token]' },
    ]);
    expect(JSON.stringify(listed)).not.toMatch(/hidden|c2VjcmV0/);
  });

  test('have texts of a thousand characters at most', () => {
    const events = keepEvents({ emit() {} });
    events.emit({ event: 'loop_failed', loop: 'l', failures: 1, cause: new Error('x'.repeat(5_000)) });
    const [listed] = events.list('info', 1);
    expect(listed?.details).toMatchObject({ cause: { message: 'x'.repeat(1_000) } });
  });
});
