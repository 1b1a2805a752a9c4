import { expect, test } from 'bun:test';
import { closeInTime } from '../../src/commands/closing.ts';
import type { ServiceEvent } from '../../src/platform/events.ts';

async function close(dispose: () => Promise<void>, within_ms = 60_000) {
  const events: ServiceEvent[] = [];
  const emit = (event: ServiceEvent) => void events.push(event);
  const is_closed = await closeInTime({ [Symbol.asyncDispose]: dispose }, { within_ms, events: { emit } });
  return { is_closed, events };
}

test('serve: a service that closes is closed, without an event', async () => {
  expect(await close(async () => {})).toEqual({ is_closed: true, events: [] });
});

test('serve: the cause is logged if closing fails', async () => {
  const cause = new Error('a part did not close');
  expect(await close(() => Promise.reject(cause))).toEqual({
    is_closed: false,
    events: [{ event: 'unexpected_failure', cause }],
  });
});

test('serve: a service that takes too long to close is given up', async () => {
  expect(await close(() => new Promise(() => {}), 1)).toEqual({
    is_closed: false,
    events: [{ event: 'service_stopped_late', after_ms: 1 }],
  });
});
