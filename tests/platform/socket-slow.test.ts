import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { openTestDatabase } from '../support/database/database.ts';
import { IS_FULL_LENGTH } from '../support/full-length.ts';
import { openRawSocket, type RawSocket } from '../support/network/raw-socket.ts';
import { waitFor } from '../support/wait.ts';
import { openSocket } from '../support/watch/socket.ts';
import { openSocketApp, pathOfNumber, type SocketApp } from '../support/watch/socket-app.ts';

const BODY_BYTES = 1024 ** 2;
/** The frame around a body, and the frames that are not bodies. */
const MORE_BYTES = 4_096;
const CHANGES = 40;
/** Bodies that fit into the buffers of kernel and client: they are sent before the server can notice. */
const UNDER_WAY_MAX = 14;

let opened: AsyncDisposableStack;
let app: SocketApp;
beforeAll(async () => {
  opened = new AsyncDisposableStack();
  const { address } = opened.use(await openTestDatabase());
  app = opened.use(await openSocketApp(address, { filling: BODY_BYTES }));
}, 300_000);
afterAll(() => opened.disposeAsync());

const openLinesOf = (name: string) => `/matchmaker/open-lines/${name}`;
const numbersOf = ({ texts }: RawSocket): number[] =>
  texts.filter((text) => text.startsWith('{"type":"body"')).map((text) => JSON.parse(text).body.number);
/** Returns the bytes that the server keeps for clients that do not read. */
const unsentBytes = () => Math.max(0, ...[...app.sockets].map((socket) => socket.getBufferedAmount()));

/** Opens a client that reads the first body and then stops reading. */
async function openSlow(name: string): Promise<RawSocket> {
  const slow = await openRawSocket(app.url, await app.issue());
  slow.send({ type: 'subscribe', id: 'a', path: pathOfNumber(name) });
  await waitFor(() => numbersOf(slow).length === 1, 'the first body');
  slow.pause();
  return slow;
}

describe('a client that does not read', () => {
  test('costs at most one body and delays no other client; when it reads again, it gets the newest state and follows', async () => {
    const name = crypto.randomUUID();
    using slow = await openSlow(name);
    using fast = openSocket(app.url, { token: await app.issue() });
    const key = await fast.subscribe('a', pathOfNumber(name));
    await fast.body(key);
    let unsent_max = 0;
    for (let change = 1; change <= CHANGES; change += 1) {
      await app.increment(name);
      expect((await fast.body(key)).number).toBe(change);
      unsent_max = Math.max(unsent_max, unsentBytes());
    }
    expect(unsent_max).toBeWithin(1, BODY_BYTES + MORE_BYTES);

    slow.resume();
    await waitFor(() => numbersOf(slow).at(-1) === CHANGES, 'the newest body');
    const numbers = numbersOf(slow);
    expect(numbers).toEqual([...new Set(numbers)].sort((one, other) => one - other));
    expect(numbers.length).toBeLessThan(UNDER_WAY_MAX);
    for (let change = CHANGES + 1; change <= CHANGES + 3; change += 1) {
      await app.increment(name);
      await waitFor(() => numbersOf(slow).at(-1) === change, 'the next body');
    }
    expect(numbersOf(slow)).toHaveLength(numbers.length + 3);
  }, 300_000);

  test('and watches several things costs at most one body of each', async () => {
    const names = Array.from({ length: 8 }, () => crypto.randomUUID());
    using slow = await openSlow(names[0] ?? '');
    for (const [id, name] of names.entries())
      if (id > 0) slow.send({ type: 'subscribe', id: `${id}`, path: pathOfNumber(name) });
    let unsent_max = 0;
    for (let change = 1; change <= 5; change += 1) {
      await Promise.all(names.map((name) => app.increment(name)));
      using fast = openSocket(app.url, { token: await app.issue() });
      for (const [id, name] of names.entries()) await fast.body(await fast.subscribe(`${id}`, pathOfNumber(name)));
      unsent_max = Math.max(unsent_max, unsentBytes());
    }
    expect(unsent_max).toBeWithin(1, names.length * (BODY_BYTES + MORE_BYTES));
    slow.resume();
    const isThere = () => numbersOf(slow).filter((number) => number === 5).length === names.length;
    await waitFor(isThere, 'the newest body of each');
  }, 300_000);

  test('is sent nothing of the things it watches after a second, however small they are', async () => {
    const [large, small] = [crypto.randomUUID(), crypto.randomUUID()];
    const before = new Set(app.sockets);
    using slow = await openSlow(large);
    // No token is checked again for an open view, so only unread bytes make its subscription wait.
    const [socket] = [...app.sockets].filter((one) => !before.has(one));
    slow.resume();
    slow.send({ type: 'subscribe', id: 'lines', path: openLinesOf(small) });
    const linesOf = () => slow.texts.filter((text) => text.includes('"lines":['));
    await waitFor(() => linesOf().length === 1 && socket?.subscriptions.length === 2, 'both to follow');
    slow.pause();
    // The system may still take what is unsent, so only the wait itself shows that the client was found slow.
    await waitFor(async () => {
      if (unsentBytes() === 0) await app.increment(large);
      return socket?.subscriptions.length === 0;
    }, 'both to wait');
    const unsent = unsentBytes();
    await app.increment(small);
    await app.increment(small);
    using fast = openSocket(app.url, { token: await app.issue() });
    const key = await fast.subscribe('a', openLinesOf(small));
    expect((await fast.body(key)).lines).toEqual([0, 1]);
    expect(unsentBytes()).toBeWithin(0, unsent + 1);
    slow.resume();
    await waitFor(() => linesOf().at(-1)?.includes('1]'), 'all lines');
    await waitFor(() => socket?.subscriptions.length === 2, 'both to follow again');
  }, 300_000);

  test('gets every line of a log', async () => {
    const name = crypto.randomUUID();
    using slow = await openSlow(name);
    slow.resume();
    slow.send({ type: 'subscribe', id: 'lines', path: `/matchmaker/lines/${name}` });
    const linesOf = (): number[] =>
      slow.texts.flatMap((text) => (text.startsWith('{"type":"body"') ? (JSON.parse(text).body.lines ?? []) : []));
    await waitFor(() => slow.texts.filter((text) => text.includes('"lines":[]')).length === 1, 'the empty log');
    slow.pause();
    for (let change = 0; change < CHANGES; change += 1) await app.increment(name);
    await waitFor(() => unsentBytes() > 0, 'the server to keep bytes for the client');
    slow.resume();
    await waitFor(() => linesOf().length >= CHANGES, 'all lines');
    expect(linesOf()).toEqual(Array.from({ length: CHANGES }, (_, line) => line));
  }, 300_000);

  // This takes 30 s, so it runs only at full length.
  test.skipIf(!IS_FULL_LENGTH)(
    'for 30 s is closed with 4410, and its slots are free',
    async () => {
      const name = crypto.randomUUID();
      using slow = await openSlow(name);
      const before = app.sockets.size;
      for (let change = 0; unsentBytes() === 0; change += 1) {
        expect(change).toBeLessThan(CHANGES);
        await app.increment(name);
        await waitFor(
          async () => (await app.api.get(pathOfNumber(name), await app.issue())).body.number === change + 1,
          'the change',
        );
      }
      let started = performance.now();
      while (app.sockets.size === before) {
        if (unsentBytes() === 0) {
          // The kernel has found room for it after all.
          await app.increment(name);
          started = performance.now();
        }
        await Bun.sleep(100);
      }
      // Only time tells this from an immediate close; a timer never fires early.
      expect(performance.now() - started).toBeGreaterThan(25_000);
      slow.resume();
      expect(await slow.closed).toBe(4410);
    },
    300_000,
  );
});
