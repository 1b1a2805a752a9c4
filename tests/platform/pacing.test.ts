import { expect, test } from 'bun:test';
import { createByteShare, pace } from '../../src/platform/pacing.ts';

test('pace: long work yields to the event loop', async () => {
  let turns = 0;
  const timer = setInterval(() => {
    turns += 1;
  }, 1);
  // Without a turn, only the time ends this.
  const end = performance.now() + 20_000;
  while (turns < 3 && performance.now() < end) await pace();
  clearInterval(timer);
  expect(turns).toBeGreaterThan(2);
});

test('pace: many pieces of long work together take no more of a turn of the event loop than one, in turns', async () => {
  // The slice of the test before ends meanwhile: all that begins within a slice may make a step.
  await Bun.sleep(20);
  const [pieces, steps_each, step_ms] = [20, 4, 6];
  const steps: number[] = [];
  let in_turn = 0;
  let most_in_turn = 0;
  const countTurn = () => {
    most_in_turn = Math.max(most_in_turn, in_turn);
    in_turn = 0;
    if (steps.length < pieces * steps_each) setImmediate(countTurn);
  };
  setImmediate(countTurn);
  const work = async (piece: number) => {
    for (let step = 0; step < steps_each; step += 1) {
      await pace();
      // Longer than a slice.
      Bun.sleepSync(step_ms);
      steps.push(piece);
      in_turn += 1;
    }
  };
  await Promise.all(Array.from({ length: pieces }, (_, piece) => work(piece)));
  countTurn();
  expect(most_in_turn).toBe(1);
  const order = Array.from({ length: pieces }, (_, piece) => piece);
  expect(steps).toEqual(Array.from({ length: steps_each }, () => order).flat());
});

test('createByteShare: transfers with chunks at hand pass on no more than their share in a turn of the event loop', async () => {
  const takeShare = createByteShare(1_000);
  let in_turn = 0;
  let most_in_turn = 0;
  let turns = 0;
  let is_done = false;
  const countTurn = () => {
    turns += 1;
    most_in_turn = Math.max(most_in_turn, in_turn);
    in_turn = 0;
    if (!is_done) setImmediate(countTurn);
  };
  setImmediate(countTurn);
  const sent = Array.from({ length: 20 }, () => 0);
  const send = async (transfer: number) => {
    for (let chunk = 0; chunk < 30; chunk += 1) {
      await takeShare(100);
      in_turn += 100;
      sent[transfer] = (sent[transfer] ?? 0) + 100;
    }
  };
  await Promise.all(sent.map((_, transfer) => send(transfer)));
  is_done = true;
  expect(sent).toEqual(sent.map(() => 3_000));
  expect(most_in_turn).toBeLessThanOrEqual(1_000);
  expect(turns).toBeGreaterThanOrEqual(20 * 3 - 1);
});

test('createByteShare: a chunk larger than the share passes, and the next one waits', async () => {
  const takeShare = createByteShare(1_000);
  await takeShare(5_000);
  let has_passed = false;
  const next = takeShare(1).then(() => {
    has_passed = true;
  });
  await Promise.resolve();
  expect(has_passed).toBe(false);
  await next;
});
