import { expect, test } from 'bun:test';
import { join } from 'node:path';
import { orAborted, Timeouts } from '../../src/platform/timeouts.ts';
import { waitFor } from '../support/wait.ts';

const TIMEOUT_MS = 20;
/** Longer than a busy machine may sleep too long. */
const LONG_TIMEOUT_MS = 2_000;

test('timeouts: work that is added after all was finished times out too, and finished work only once', async () => {
  const ended: string[] = [];
  const timeouts = new Timeouts<string>(TIMEOUT_MS, (work) => void ended.push(work));
  timeouts.add('first');
  timeouts.expireAll();
  expect(ended).toEqual(['first']);
  timeouts.expireAll();
  timeouts.add('second');
  await waitFor(() => ended.length > 1, 'the second work to time out');
  expect(ended).toEqual(['first', 'second']);
});

test('timeouts: work that is added while other work times out delays none', async () => {
  const ended: [string, number][] = [];
  const timeouts = new Timeouts<string>(LONG_TIMEOUT_MS, (work) => {
    ended.push([work, performance.now()]);
    if (work === 'first') timeouts.add('third');
  });
  timeouts.add('first');
  await Bun.sleep(TIMEOUT_MS);
  timeouts.add('second');
  await waitFor(() => ended.length === 3, 'all work to time out');
  // The second would otherwise have to wait for the timer of the third.
  const [[, first] = [], [, second] = [], [, third] = []] = ended as [string, number][];
  expect(ended.map(([work]) => work)).toEqual(['first', 'second', 'third']);
  expect((second ?? 0) - (first ?? 0)).toBeLessThan((third ?? 0) - (second ?? 0));
});

test('timeouts: after a callback that throws, all other work still times out', async () => {
  const script = `
    const { Timeouts } = await import(${JSON.stringify(join(import.meta.dir, '../../src/platform/timeouts.ts'))});
    process.on('uncaughtException', ({ message }) => console.log('thrown:', message));
    const timeouts = new Timeouts(${TIMEOUT_MS}, (work) => {
      if (work === 'failing') throw new Error(work);
      console.log('ended:', work);
      if (work === 'last') process.exit(0);
    });
    timeouts.add('failing');
    timeouts.add('beside');
    await Bun.sleep(1);
    timeouts.add('last');
    // The timers of timeouts keep no process running.
    setInterval(() => {}, 1_000);`;
  const child = Bun.spawn([process.execPath, '-e', script], { stdout: 'pipe', stderr: 'inherit' });
  expect(await new Response(child.stdout).text()).toBe('thrown: failing\nended: beside\nended: last\n');
});

test('timeouts: finished work does not time out', async () => {
  const ended: string[] = [];
  const timeouts = new Timeouts<string>(TIMEOUT_MS, (work) => void ended.push(work));
  const unfinished = timeouts.add('finished');
  timeouts.add('kept');
  timeouts.finish(unfinished);
  await waitFor(() => ended.length > 0, 'the kept work to time out');
  expect(ended).toEqual(['kept']);
});

test('timeouts: work is awaited until a signal is aborted, before or during it', async () => {
  const aborting = new AbortController();
  expect(await orAborted(Promise.resolve('done'), aborting.signal)).toBe('done');
  const failure = new Error('the work failed');
  await expect(orAborted(Promise.reject(failure), aborting.signal)).rejects.toBe(failure);
  const { promise } = Promise.withResolvers<never>();
  const waiting = [orAborted(promise, aborting.signal), orAborted(promise, aborting.signal, () => failure)];
  aborting.abort('stopped');
  const late = orAborted(promise, aborting.signal);
  const outcomes = await Promise.allSettled([...waiting, late]);
  expect(outcomes.map((outcome) => outcome.status === 'rejected' && outcome.reason)).toEqual([
    'stopped',
    failure,
    'stopped',
  ]);
});
