import { expect, test } from 'bun:test';
import { createSamples } from '../../../src/features/operator/samples.ts';
import { keepEvents } from '../../../src/platform/kept-events.ts';
import { createFixedClock } from '../../support/clock.ts';
import { shareService } from '../../support/suite.ts';
import { waitFor } from '../../support/wait.ts';

const HOUR_MS = 3_600_000;
const muster = shareService();

test('samples: one that is older than an hour is dropped, however few there are', async () => {
  const { database } = muster;
  const clock = createFixedClock();
  const events = keepEvents({ emit() {} });
  const samples = createSamples({ database, clock, events, readLimits: () => [] });
  const takeOne = async () => {
    const ts = clock.now().toISOString();
    const stopping = new AbortController();
    const { stopped } = samples.startTaking(stopping.signal);
    await waitFor(() => samples.list().at(-1)?.ts === ts, 'the sample');
    stopping.abort();
    await stopped;
    return ts;
  };
  const first = await takeOne();
  clock.advance(HOUR_MS);
  const second = await takeOne();
  expect(samples.list().map(({ ts }) => ts)).toEqual([first, second]);
  clock.advance(1);
  const third = await takeOne();
  expect(samples.list().map(({ ts }) => ts)).toEqual([second, third]);
});

test('samples: each says for how long it counted', async () => {
  const { database, clock } = muster;
  const events = keepEvents({ emit() {} });
  const started = performance.now();
  const samples = createSamples({ database, clock, events, readLimits: () => [] });
  await waitFor(() => performance.now() - started > 50, 'some time to pass');
  const stopping = new AbortController();
  const { stopped } = samples.startTaking(stopping.signal);
  const sample = await waitFor(() => samples.list().at(-1), 'the sample');
  expect(sample.span_ms).toBeWithin(50, Math.ceil(performance.now() - started) + 1);
  stopping.abort();
  await stopped;
});
