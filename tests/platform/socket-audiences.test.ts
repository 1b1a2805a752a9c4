import { beforeEach, describe, expect, test } from 'bun:test';
import { ServiceError } from '../../src/platform/errors.ts';
import { type Audiences, createAudiences, type Member } from '../../src/platform/socket/audiences.ts';
import type { Channel, Snapshot } from '../../src/platform/watch/channels.ts';
import type { View } from '../../src/platform/watch/views.ts';
import { waitFor } from '../support/wait.ts';

const VIEW: View = { kind: 'state', name: 'it', topics: [], read: async () => ({}) };

/** A question to the channel that a test answers when it likes. */
interface Asked {
  number: number | undefined;
  answer(shown: Snapshot | undefined): void;
  fail(error: Error): void;
}

const shown = (after: number, number: number): Snapshot => ({ number, after, text: `"${after} to ${number}"` });
/** One that is long enough for the group to look who reads. */
const long = (after: number, number: number): Snapshot => ({
  ...shown(after, number),
  text: `"${after} to ${number}${' '.repeat(70_000)}"`,
});

let audiences: Audiences;
let asked: Asked[];
let notify: () => void;
let followers: Map<string, Set<(frame: string) => void>>;
beforeEach(() => {
  asked = [];
  followers = new Map();
  const ask = (number: number | undefined) => {
    const { promise, resolve, reject } = Promise.withResolvers<Snapshot | undefined>();
    asked.push({ number, answer: resolve, fail: reject });
    return promise;
  };
  const channel: Channel = {
    peek: () => undefined,
    since: ask,
    present: async (number) => (await ask(number)) ?? shown(0, 0),
  };
  audiences = createAudiences({
    channels: {
      listen(_, listener) {
        notify = () => listener.onChange();
        return channel;
      },
      leave() {},
    },
    publish: (key, frame) => {
      for (const take of followers.get(key) ?? []) take(frame);
    },
  });
});

function join(number: number | undefined) {
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
  const joined = audiences.join(VIEW, member);
  joined.catchUp();
  return { ...joined, frames, state };
}

/** Lets everything happen that waits for nothing. */
const settle = () => new Promise((resolve) => setImmediate(resolve));

async function waitForQuestion(): Promise<Asked> {
  await waitFor(() => asked.length > 0, 'a question');
  const [first] = asked.splice(0, 1);
  if (!first) throw new Error('nobody asked');
  return first;
}

async function answer(question: number | undefined, what: Snapshot | undefined): Promise<void> {
  await settle();
  const place = asked.findIndex(({ number }) => number === question);
  if (place < 0) throw new Error(`nobody asked for ${question}, but for ${asked.map(({ number }) => number)}`);
  asked.splice(place, 1)[0]?.answer(what);
  await settle();
}

describe('those who watch one thing together', () => {
  test('are sent what is new once, at the same moment', async () => {
    const [ann, bob] = [join(5), join(5)];
    await answer(5, undefined);
    await answer(5, undefined);
    notify();
    await answer(5, shown(5, 6));
    expect([ann.frames, bob.frames]).toEqual([['5 to 6'], ['5 to 6']]);
  });

  test('are not sent what was looked for on behalf of one who has left', async () => {
    const ann = join(5);
    await answer(5, undefined);
    notify();
    // While it is looked what comes after 5, somebody joins who has seen that already, and the only other one leaves.
    const bob = join(8);
    ann.leave();
    await answer(8, undefined);
    await answer(5, shown(5, 8));
    expect(bob.frames).toEqual([]);
    notify();
    await answer(8, shown(8, 9));
    expect(bob.frames).toEqual(['8 to 9']);
  });

  test('are sent the newest alone when they were busy, and then follow', async () => {
    const [ann, bob] = [join(5), join(5)];
    await answer(5, undefined);
    await answer(5, undefined);
    bob.state.is_busy = true;
    for (const number of [5, 6, 7]) {
      notify();
      await answer(number, long(number, number + 1));
      // After each the group looks for more.
      await answer(number + 1, undefined);
    }
    expect([ann.frames, bob.frames]).toEqual([['5 to 6', '6 to 7', '7 to 8'], []]);
    bob.state.is_busy = false;
    bob.catchUp();
    await answer(5, shown(5, 8));
    await answer(8, undefined);
    notify();
    await answer(8, shown(8, 9));
    expect(bob.frames).toEqual(['5 to 8', '8 to 9']);
    expect(ann.frames.at(-1)).toBe('8 to 9');
  });

  test('are sent no more than 64 KiB each before it is looked who of them reads', async () => {
    const [ann, bob] = [join(5), join(5)];
    await answer(5, undefined);
    await answer(5, undefined);
    bob.state.is_busy = true;
    const text = `"${'x'.repeat(20_000)}"`;
    for (let number = 5; number < 15; number += 1) {
      notify();
      await answer(number, { number: number + 1, after: number, text });
      await answer(number + 1, undefined);
    }
    expect([ann.frames.length, bob.frames.length]).toEqual([10, 3]);
    bob.state.is_busy = false;
    bob.catchUp();
    await answer(8, shown(8, 15));
    expect(bob.frames.slice(3)).toEqual(['8 to 15']);
  });

  test('are sent nothing from the moment on at which they are paused', async () => {
    const [ann, bob] = [join(5), join(5)];
    await answer(5, undefined);
    await answer(5, undefined);
    bob.state.is_busy = true;
    bob.pause();
    notify();
    await answer(5, shown(5, 6));
    expect([ann.frames, bob.frames]).toEqual([['5 to 6'], []]);
    bob.state.is_busy = false;
    bob.catchUp();
    await answer(5, shown(5, 6));
    expect(bob.frames).toEqual(['5 to 6']);
  });

  test('are told in parts when they are many, and who comes or is paused in between has each once', async () => {
    const many = Array.from({ length: 1_200 }, () => join(5));
    await settle();
    for (const { answer } of asked.splice(0)) answer(undefined);
    await settle();
    const [first, last] = [many[0], many.at(-1)];
    notify();
    const ask = await waitForQuestion();
    ask.answer(shown(5, 6));
    // No turn of the event loop in between: the next part has one of its own.
    for (let steps = 0; steps < 100 && first?.frames.length === 0; steps += 1) await Promise.resolve();
    expect(first?.frames).toEqual(['5 to 6']);
    expect(last?.frames).toEqual([]);
    // Each of them stands where he is at this moment.
    const late = join(5);
    for (const one of [first, last]) one?.pause();
    for (const one of [first, last]) one?.catchUp();
    const answerAll = () => {
      for (const { number, answer } of asked.splice(0)) answer(number === 5 ? shown(5, 6) : undefined);
      return [...many, late].every(({ frames }) => frames.length > 0) && asked.length === 0;
    };
    await waitFor(answerAll, 'all of them');
    expect(new Set([...many, late].map(({ frames }) => frames.join()))).toEqual(new Set(['5 to 6']));
  });

  test('hear of a change that comes while one of them looks', async () => {
    const ann = join(5);
    await answer(5, undefined);
    const bob = join(5);
    // The change comes, and is told to those who follow, before the newcomer has looked.
    notify();
    await settle();
    const [of_bob, of_audience] = asked.splice(0);
    of_audience?.answer(shown(5, 6));
    await settle();
    of_bob?.answer(undefined);
    await answer(5, shown(5, 6));
    expect([ann.frames, bob.frames]).toEqual([['5 to 6'], ['5 to 6']]);
  });

  test('do not wait for one who says that he has seen more than there is', async () => {
    const liar = join(1_000_000);
    await answer(1_000_000, undefined);
    const ann = join(5);
    await answer(5, undefined);
    await answer(5, undefined);
    notify();
    await answer(1_000_000, undefined);
    await answer(5, shown(5, 6));
    expect([liar.frames, ann.frames]).toEqual([[], ['5 to 6']]);
  });

  test('are told at once when it cannot be seen any more, and later again when that is our own fault', async () => {
    const [ann, bob] = [join(5), join(3)];
    await answer(5, undefined);
    await settle();
    asked.splice(0)[0]?.fail(new Error('the database is away'));
    await waitFor(() => asked.length === 1, 'another look');
    expect([ann.state.refused, bob.state.refused]).toEqual([undefined, undefined]);
    await answer(5, shown(5, 6));
    await answer(6, undefined);
    await answer(3, shown(3, 6));
    await answer(6, undefined);
    expect([ann.frames, bob.frames]).toEqual([['5 to 6'], ['3 to 6']]);
    notify();
    await settle();
    for (const { fail } of asked.splice(0)) fail(new ServiceError('GAME_NOT_FOUND', {}));
    await settle();
    expect([ann.state.refused, bob.state.refused]).toEqual([expect.any(ServiceError), expect.any(ServiceError)]);
  });
});
