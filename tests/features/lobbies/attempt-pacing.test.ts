import { expect, test } from 'bun:test';
import { AttemptPacing } from '../../../src/features/lobbies/matchmaking/queue/attempt-pacing.ts';

const NEVER_MS = 3_600_000;
const FINDS = 100;

/** Adds waiting finds, which have tried once. Returns the numbers of those that try again, in order. */
async function openFinds(namespace_id: string, pacing = new AttemptPacing(NEVER_MS)) {
  const aborting = new AbortController();
  const wait = { signal: aborting.signal, ends_at: performance.now() + NEVER_MS };
  const finds = Array.from({ length: FINDS }, () => pacing.add(namespace_id));
  for (const find of finds) await pacing.waitForAttempt(find, wait);
  const again: number[] = [];
  const waits = finds.map(async (find, number) => {
    await pacing.waitForAttempt(find, wait);
    again.push(number);
  });
  await Bun.sleep(0);
  const end = async () => {
    aborting.abort();
    await Promise.all(waits);
  };
  return { pacing, finds, again, end };
}

test('the first finds of a namespace try again at once; another one as soon as it is one of them', async () => {
  const { pacing, finds, again, end } = await openFinds('one');
  const first = again.length;
  expect(first).toBeLessThan(FINDS);
  expect(again).toEqual(Array.from({ length: first }, (_, number) => number));
  for (const find of finds.slice(first - 2, first + 1)) pacing.remove(find);
  await Bun.sleep(0);
  expect(again.slice(first)).toContain(first + 1);
  expect(again.slice(first)).not.toContain(first + 3);
  await end();
  expect(again).toHaveLength(FINDS);
});

test('each namespace has first finds of its own', async () => {
  const one = await openFinds('one');
  const other = await openFinds('other', one.pacing);
  expect(other.again).toEqual(one.again);
  await Promise.all([one.end(), other.end()]);
});

test('a find tries once more when its time ends', async () => {
  const { pacing, end } = await openFinds('one');
  const find = pacing.add('one');
  const { signal } = new AbortController();
  await pacing.waitForAttempt(find, { signal, ends_at: Number.POSITIVE_INFINITY });
  await pacing.waitForAttempt(find, { signal, ends_at: performance.now() + 1 });
  await end();
});
