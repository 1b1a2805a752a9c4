import { expect, test } from 'bun:test';
import { Timeouts } from '../../src/platform/timeouts.ts';
import { waitFor } from '../support/wait.ts';

const TIMEOUT_MS = 20;

test('timeouts: work that is added after all was finished times out too, and finished work only once', async () => {
  const ended: string[] = [];
  const timeouts = new Timeouts<string>(TIMEOUT_MS, (work) => void ended.push(work));
  timeouts.add('first');
  timeouts.finish();
  expect(ended).toEqual(['first']);
  timeouts.finish();
  timeouts.add('second');
  await waitFor(() => ended.length > 1, 'the second work to time out');
  expect(ended).toEqual(['first', 'second']);
});

test('timeouts: finished work does not time out', async () => {
  const ended: string[] = [];
  const timeouts = new Timeouts<string>(TIMEOUT_MS, (work) => void ended.push(work));
  const finish = timeouts.add('finished');
  timeouts.add('kept');
  finish();
  await waitFor(() => ended.length > 0, 'the kept work to time out');
  expect(ended).toEqual(['kept']);
});
