import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import type { DatabaseAddress } from '../../src/platform/database/database.ts';
import { openTestDatabase } from '../support/database/database.ts';
import { waitFor } from '../support/wait.ts';
import { openSocket } from '../support/watch/socket.ts';
import { openSocketApp, pathOfNumber, type SocketApp } from '../support/watch/socket-app.ts';

let opened: AsyncDisposableStack;
let address: DatabaseAddress;
let app: SocketApp;
let token: string;
beforeAll(async () => {
  opened = new AsyncDisposableStack();
  ({ address } = opened.use(await openTestDatabase()));
  app = opened.use(await openSocketApp(address));
  token = await app.issue();
}, 300_000);
afterAll(() => opened.disposeAsync());

const newName = () => crypto.randomUUID();
const linesOf = (name: string) => `/matchmaker/lines/${name}`;
const open = (on = app, its_token = token) => openSocket(on.url, { token: its_token });
const indexOf = async (path: string): Promise<string> => (await app.api.ok('GET', path, { token })).watch.index;
const incrementTimes = async (name: string, times: number) => {
  for (let time = 0; time < times; time += 1) await app.increment(name);
};

/** Waits for a body that matches, and returns all bodies until then. */
async function bodiesUntil(socket: ReturnType<typeof open>, isLast: (body: Body) => boolean): Promise<Body[]> {
  const bodies = () => socket.frames.filter(({ type }) => type === 'body').map(({ body }) => body);
  return await waitFor(() => bodies().some(isLast) && bodies(), 'the last body');
}

interface Body {
  number: number;
  lines: number[];
}

describe('a client resumes with the index of its last body', () => {
  test('from a poll to a socket and from a socket to a poll', async () => {
    const name = newName();
    const index = await indexOf(pathOfNumber(name));
    using socket = open();
    const key = await socket.subscribe('a', pathOfNumber(name), index);
    await app.increment(name);
    const body = await socket.body(key);
    expect(socket.frames.filter(({ type }) => type === 'body').map((frame) => frame.body.number)).toEqual([1]);
    const polling = app.api.ok('GET', `${pathOfNumber(name)}?watch_index=${body.watch.index}`, { token });
    await app.increment(name);
    expect((await polling).number).toBe(2);
  });

  test('on another process, which sends nothing before the next change', async () => {
    const name = newName();
    await app.increment(name);
    const index = await indexOf(pathOfNumber(name));
    await using other = await openSocketApp(address);
    using socket = open(other, await other.issue());
    await socket.subscribe('a', pathOfNumber(name), index);
    await app.increment(name);
    expect((await bodiesUntil(socket, ({ number }) => number === 2)).map(({ number }) => number)).toEqual([2]);
  });

  test('and gets only the newest of several states', async () => {
    const name = newName();
    const index = await indexOf(pathOfNumber(name));
    await incrementTimes(name, 5);
    using socket = open();
    await socket.subscribe('a', pathOfNumber(name), index);
    expect((await bodiesUntil(socket, ({ number }) => number === 5)).map(({ number }) => number)).toEqual([5]);
  });

  test('and gets each line of a log once, however many there are', async () => {
    const name = newName();
    const index = await indexOf(linesOf(name));
    const lines = 700;
    await app.incrementBy(name, lines);
    await using other = await openSocketApp(address);
    using socket = open(other, await other.issue());
    await socket.subscribe('a', linesOf(name), index);
    const bodies = await bodiesUntil(socket, (body) => body.lines.includes(lines - 1));
    expect(bodies.flatMap((body) => body.lines)).toEqual(Array.from({ length: lines }, (_, line) => line));
    expect(Math.max(...bodies.map((body) => body.lines.length))).toBe(256);
  });

  test('in the query of the path too; an index in the frame overrides it', async () => {
    const name = newName();
    await app.increment(name);
    const index = await indexOf(pathOfNumber(name));
    using socket = open();
    await socket.subscribe('a', `${pathOfNumber(name)}?watch_index=${index}`);
    await app.increment(name);
    expect((await bodiesUntil(socket, ({ number }) => number === 2)).map(({ number }) => number)).toEqual([2]);
    using other = open();
    await other.subscribe('a', `${pathOfNumber(name)}?watch_index=${index}`, await indexOf(pathOfNumber(name)));
    await app.increment(name);
    expect((await bodiesUntil(other, ({ number }) => number === 3)).map(({ number }) => number)).toEqual([3]);
  });
});

describe('an invalid index counts as nothing seen, without effect on other clients:', () => {
  const INDICES: [string, (index: string) => string][] = [
    ['of another database', (index) => index.replace(/^.{8}/, '00000000')],
    ['from the far future', (index) => index.replace(/\d+$/, '999999999999999')],
    ['a little ahead', (index) => index.replace(/\d+$/, (number) => String(Number(number) + 1))],
    ['with an invalid number', (index) => index.replace(/\d+$/, '1e9')],
    ['with a negative number', (index) => index.replace(/\d+$/, '-1')],
    ['that is empty', () => ''],
    ['that is garbage', () => '\u0000{"$ne":1}'],
  ];
  const KINDS: [string, (name: string) => string, (body: Body) => number][] = [
    ['state', pathOfNumber, ({ number }) => number],
    ['log', linesOf, ({ lines }) => (lines.at(-1) ?? -1) + 1],
  ];
  for (const [kind, toPath, numberOf] of KINDS) {
    for (const [what, forge] of INDICES) {
      test(`${kind}, an index ${what}, over a socket`, async () => {
        const name = newName();
        await incrementTimes(name, 3);
        const path = toPath(name);
        const index = await indexOf(path);
        using forging = open();
        // It subscribes first, so that its index could affect later subscribers.
        const forging_key = await forging.subscribe('a', path, forge(index));
        using resuming = open();
        const key = await resuming.subscribe('a', path, index);
        expect(key).toBe(forging_key);
        const first = await forging.body(forging_key);
        expect(first.watch.index).toBe(index);
        await app.increment(name);
        expect([numberOf(await forging.body(forging_key)), numberOf(await resuming.body(key))]).toEqual([4, 4]);
        await app.increment(name);
        expect([numberOf(await forging.body(forging_key)), numberOf(await resuming.body(key))]).toEqual([5, 5]);
        expect(resuming.frames.filter(({ type }) => type === 'body')).toHaveLength(2);
        if (kind === 'log') expect(await bodiesUntil(resuming, ({ lines }) => lines[0] === 4)).toHaveLength(2);
      });

      test(`${kind}, an index ${what}, in a poll`, async () => {
        const name = newName();
        await incrementTimes(name, 3);
        const path = toPath(name);
        const index = await indexOf(path);
        const forged = encodeURIComponent(forge(index).replace('\u0000', '0'));
        const body = await app.api.ok('GET', `${path}?watch_index=${forged}`, { token });
        expect([numberOf(body), body.watch.index]).toEqual([3, index]);
      });
    }
  }
});

test('socket: when the service stops, sockets close with 1012, polls are answered, and new sockets are refused', async () => {
  const stopping = await openSocketApp(address);
  const its_token = await stopping.issue();
  const name = newName();
  const sockets = Array.from({ length: 20 }, () => open(stopping, its_token));
  for (const socket of sockets) await socket.body(await socket.subscribe('a', pathOfNumber(name)));
  const polled = newName();
  const { watch } = await stopping.api.ok('GET', pathOfNumber(polled), { token: its_token });
  const polling = stopping.api.ok('GET', `${pathOfNumber(polled)}?watch_index=${watch.index}`, { token: its_token });
  await waitFor(() => stopping.listeners.get(`number:${polled}`) === 1, 'the poll to wait');
  stopping.stop();
  for (const socket of sockets) expect((await socket.closed).code).toBe(1012);
  expect((await polling).watch).toEqual(watch);
  const late = open(stopping, its_token);
  expect((await late.closed).code).not.toBe(1000);
  expect(late.frames).toEqual([]);
  await stopping[Symbol.asyncDispose]();
});
