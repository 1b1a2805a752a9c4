import { beforeEach, describe, expect, test } from 'bun:test';
import { ServiceError } from '../../src/platform/errors.ts';
import { type Audiences, createAudiences, type Member } from '../../src/platform/socket/audiences.ts';
import type { Channel, Snapshot } from '../../src/platform/watch/channels.ts';
import type { View } from '../../src/platform/watch/views.ts';
import { runPending, waitFor } from '../support/wait.ts';

const VIEW: View = { kind: 'state', name: 'it', topics: [], read: async () => ({}) };

/** A read of the channel, which the test answers. */
interface Read {
  number: number | undefined;
  answer(snapshot: Snapshot | undefined): void;
  fail(error: Error): void;
}

const snapshotOf = (after: number, number: number): Snapshot => ({
  number,
  from: after,
  text: `"${after} to ${number}"`,
});
/** A body long enough for the audience to check which members are busy. */
const longSnapshotOf = (after: number, number: number): Snapshot => ({
  ...snapshotOf(after, number),
  text: `"${after} to ${number}${' '.repeat(70_000)}"`,
});

let audiences: Audiences;
let reads: Read[];
/** What the channel knows without reading, by the number before it. */
let known: Map<number, Snapshot | undefined>;
let notify: () => void;
let followers: Map<string, Set<(frame: string) => void>>;
/** The faults that were reported. */
let faults: unknown[];
beforeEach(() => {
  reads = [];
  known = new Map();
  followers = new Map();
  faults = [];
  const read = (number: number | undefined) => {
    const { promise, resolve, reject } = Promise.withResolvers<Snapshot | undefined>();
    reads.push({ number, answer: resolve, fail: reject });
    return promise;
  };
  const channel: Channel = {
    since: (number) => (known.has(number) ? known.get(number) : read(number)),
    present: async (number) => (await read(number)) ?? snapshotOf(0, 0),
  };
  audiences = createAudiences({
    channels: {
      listen(_, listener) {
        notify = () => listener.onChange();
        return { channel, leave() {} };
      },
    },
    publish: (key, frame) => {
      for (const take of followers.get(key) ?? []) take(frame);
    },
    onFault: (view_name, cause) => faults.push([view_name, cause]),
  });
});

function addMember(number: number | undefined) {
  const frames: string[] = [];
  const take = (frame: string) => void frames.push(JSON.parse(frame).body.trim());
  const state = { is_busy: false, refused: undefined as unknown };
  const member: Member = {
    number,
    isBusy: () => state.is_busy,
    send: take,
    follow(key, is_following) {
      const all = followers.get(key) ?? new Set();
      followers.set(key, all);
      if (is_following) all.add(take);
      else all.delete(take);
    },
    fail: (error) => {
      state.refused = error;
    },
  };
  const membership = audiences.join(VIEW, member);
  membership.catchUp();
  return { ...membership, frames, state };
}

async function nextRead(): Promise<Read> {
  await waitFor(() => reads.length > 0, 'a read');
  const [first] = reads.splice(0, 1);
  if (!first) throw new Error('the audience reads');
  return first;
}

async function answer(after: number | undefined, what: Snapshot | undefined): Promise<void> {
  await runPending();
  const index = reads.findIndex(({ number }) => number === after);
  if (index < 0) throw new Error(`no read after ${after}, but after ${reads.map(({ number }) => number)}`);
  reads.splice(index, 1)[0]?.answer(what);
  await runPending();
}

describe('the members of an audience', () => {
  test('an audience without members reads no more, although there is a change after each read', async () => {
    const only = addMember(5);
    (await nextRead()).answer(undefined);
    await runPending();
    notify();
    const read = await nextRead();
    only.leave();
    read.answer(snapshotOf(5, 6));
    await runPending();
    expect(reads).toEqual([]);
    expect(only.frames).toEqual([]);
  });

  test('get a change in one frame', async () => {
    const [ann, bob] = [addMember(5), addMember(5)];
    await answer(5, undefined);
    await answer(5, undefined);
    notify();
    await answer(5, snapshotOf(5, 6));
    expect([ann.frames, bob.frames]).toEqual([['5 to 6'], ['5 to 6']]);
  });

  test('get a change that the channel knows without a read', async () => {
    const ann = addMember(5);
    await answer(5, undefined);
    known.set(5, snapshotOf(5, 6)).set(6, undefined);
    notify();
    await runPending();
    expect(ann.frames).toEqual(['5 to 6']);
    expect(reads).toEqual([]);
  });

  test('do not get what was read for a member that has left', async () => {
    const ann = addMember(5);
    await answer(5, undefined);
    notify();
    // While the audience reads what follows 5, a member with number 8 joins, and the only other one leaves.
    const bob = addMember(8);
    ann.leave();
    await answer(8, undefined);
    await answer(5, snapshotOf(5, 8));
    expect(bob.frames).toEqual([]);
    notify();
    await answer(8, snapshotOf(8, 9));
    expect(bob.frames).toEqual(['8 to 9']);
  });

  test('get the newest body alone after they were busy, and then follow again', async () => {
    const [ann, bob] = [addMember(5), addMember(5)];
    await answer(5, undefined);
    await answer(5, undefined);
    bob.state.is_busy = true;
    for (const number of [5, 6, 7]) {
      notify();
      await answer(number, longSnapshotOf(number, number + 1));
      // After each change the audience reads for more.
      await answer(number + 1, undefined);
    }
    expect([ann.frames, bob.frames]).toEqual([['5 to 6', '6 to 7', '7 to 8'], []]);
    bob.state.is_busy = false;
    bob.catchUp();
    await answer(5, snapshotOf(5, 8));
    await answer(8, undefined);
    notify();
    await answer(8, snapshotOf(8, 9));
    expect(bob.frames).toEqual(['5 to 8', '8 to 9']);
    expect(ann.frames.at(-1)).toBe('8 to 9');
  });

  test('get at most 64 KiB each before the audience checks which of them are busy', async () => {
    const [ann, bob] = [addMember(5), addMember(5)];
    await answer(5, undefined);
    await answer(5, undefined);
    bob.state.is_busy = true;
    const text = `"${'x'.repeat(20_000)}"`;
    for (let number = 5; number < 15; number += 1) {
      notify();
      await answer(number, { number: number + 1, from: number, text });
      await answer(number + 1, undefined);
    }
    expect([ann.frames.length, bob.frames.length]).toEqual([10, 3]);
    bob.state.is_busy = false;
    bob.catchUp();
    await answer(8, snapshotOf(8, 15));
    expect(bob.frames.slice(3)).toEqual(['8 to 15']);
  });

  test('get nothing while they are paused', async () => {
    const [ann, bob] = [addMember(5), addMember(5)];
    await answer(5, undefined);
    await answer(5, undefined);
    bob.state.is_busy = true;
    bob.pause();
    notify();
    await answer(5, snapshotOf(5, 6));
    expect([ann.frames, bob.frames]).toEqual([['5 to 6'], []]);
    bob.state.is_busy = false;
    bob.catchUp();
    await answer(5, snapshotOf(5, 6));
    expect(bob.frames).toEqual(['5 to 6']);
  });

  test('are notified in parts if they are many; a member that joins or pauses in between gets each body once', async () => {
    const many = Array.from({ length: 1_200 }, () => addMember(5));
    await runPending();
    for (const { answer } of reads.splice(0)) answer(undefined);
    await runPending();
    const [first, last] = [many[0], many.at(-1)];
    notify();
    const read = await nextRead();
    read.answer(snapshotOf(5, 6));
    // No turn of the event loop passes here, because the next part waits for one.
    for (let steps = 0; steps < 100 && first?.frames.length === 0; steps += 1) await Promise.resolve();
    expect(first?.frames).toEqual(['5 to 6']);
    expect(last?.frames).toEqual([]);
    // At this moment each of them is at 5.
    const late = addMember(5);
    for (const one of [first, last]) one?.pause();
    for (const one of [first, last]) one?.catchUp();
    const answerAll = () => {
      for (const { number, answer } of reads.splice(0)) answer(number === 5 ? snapshotOf(5, 6) : undefined);
      return [...many, late].every(({ frames }) => frames.length > 0) && reads.length === 0;
    };
    await waitFor(answerAll, 'every member to have a body');
    expect(new Set([...many, late].map(({ frames }) => frames.join()))).toEqual(new Set(['5 to 6']));
  });

  test('get a change that comes while a new member is reading', async () => {
    const ann = addMember(5);
    await answer(5, undefined);
    const bob = addMember(5);
    // The change is published to the followers before the new member has read.
    notify();
    await runPending();
    const [read_of_bob, read_of_audience] = reads.splice(0);
    read_of_audience?.answer(snapshotOf(5, 6));
    await runPending();
    read_of_bob?.answer(undefined);
    await answer(5, snapshotOf(5, 6));
    expect([ann.frames, bob.frames]).toEqual([['5 to 6'], ['5 to 6']]);
  });

  test('do not wait for a member with a number from the future', async () => {
    const ahead = addMember(1_000_000);
    await answer(1_000_000, undefined);
    const ann = addMember(5);
    await answer(5, undefined);
    await answer(5, undefined);
    notify();
    await answer(1_000_000, undefined);
    await answer(5, snapshotOf(5, 6));
    expect([ahead.frames, ann.frames]).toEqual([[], ['5 to 6']]);
  });

  test('get an error at once if the view is gone for them, and later the state if the failure was internal', async () => {
    const [ann, bob] = [addMember(5), addMember(3)];
    await answer(5, undefined);
    await runPending();
    reads.splice(0)[0]?.fail(new Error('the database does not answer'));
    await waitFor(() => reads.length === 1, 'another read');
    expect([ann.state.refused, bob.state.refused]).toEqual([undefined, undefined]);
    await answer(5, snapshotOf(5, 6));
    await answer(6, undefined);
    await answer(3, snapshotOf(3, 6));
    await answer(6, undefined);
    expect([ann.frames, bob.frames]).toEqual([['5 to 6'], ['3 to 6']]);
    notify();
    await runPending();
    for (const { fail } of reads.splice(0)) fail(new ServiceError('GAME_NOT_FOUND', {}));
    await runPending();
    expect([ann.state.refused, bob.state.refused]).toEqual([expect.any(ServiceError), expect.any(ServiceError)]);
    expect(faults).toEqual([[VIEW.name, new Error('the database does not answer')]]);
  });

  test('make one report of a fault, however often a read is retried, and another after it has succeeded', async () => {
    addMember(5);
    (await nextRead()).fail(new Error('first'));
    (await nextRead()).fail(new Error('first, again'));
    (await nextRead()).answer(snapshotOf(5, 6));
    (await nextRead()).fail(new Error('second'));
    await runPending();
    expect(faults).toEqual(['first', 'second'].map((what) => [VIEW.name, new Error(what)]));
  });
});
