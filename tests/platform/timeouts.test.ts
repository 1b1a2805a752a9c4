import { expect, test } from 'bun:test';
import { Timeouts } from '../../src/platform/timeouts.ts';

const TIMEOUT_MS = 20;

test('timeouts: work that is added after all was finished times out too, and finished work only once', async () => {
  const ended: string[] = [];
  const timeouts = new Timeouts<string>(TIMEOUT_MS, (work) => void ended.push(work));
  timeouts.add('first');
  timeouts.finish();
  expect(ended).toEqual(['first']);
  timeouts.finish();
  timeouts.add('second');
  await Bun.sleep(5 * TIMEOUT_MS);
  expect(ended).toEqual(['first', 'second']);
});

test('timeouts: deleted work does not time out', async () => {
  const ended: string[] = [];
  const timeouts = new Timeouts<string>(TIMEOUT_MS, (work) => void ended.push(work));
  timeouts.add('deleted');
  timeouts.add('kept');
  timeouts.delete('deleted');
  await Bun.sleep(5 * TIMEOUT_MS);
  expect(ended).toEqual(['kept']);
});
