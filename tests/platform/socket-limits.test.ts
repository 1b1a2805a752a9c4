import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import type { DatabaseAddress } from '../../src/platform/database/database.ts';
import { openTestDatabase } from '../support/database/database.ts';
import { openRawSocket } from '../support/network/raw-socket.ts';
import { waitFor } from '../support/wait.ts';
import { isError, openSocket, type TestSocket } from '../support/watch/socket.ts';
import { openSocketApp, pathOfNumber } from '../support/watch/socket-app.ts';

let opened: AsyncDisposableStack;
let address: DatabaseAddress;
beforeAll(async () => {
  opened = new AsyncDisposableStack();
  ({ address } = opened.use(await openTestDatabase()));
}, 300_000);
afterAll(() => opened.disposeAsync());

const waitUntilReady = (socket: TestSocket) => socket.next(({ type }) => type === 'ready');

/** Subscribes to a thing for each number, which is its id. Returns the outcome of each. */
async function subscribeAll(socket: TestSocket, numbers: number[], prefix = 'number'): Promise<string[]> {
  for (const number of numbers)
    socket.send({ type: 'subscribe', id: `${number}`, path: pathOfNumber(`${prefix}-${number}`) });
  const outcomes = () => socket.frames.filter(({ type }) => type === 'subscribed' || type === 'error');
  const before = outcomes().length;
  await waitFor(() => outcomes().length === before + numbers.length, 'an answer to each subscription');
  return outcomes()
    .slice(before)
    .map(({ type, error }) => error?.code ?? type);
}

const upTo = (count: number) => Array.from({ length: count }, (_, number) => number);

describe('a socket may watch', () => {
  test('256 things, and another only after it unsubscribes from one', async () => {
    await using app = await openSocketApp(address);
    using socket = openSocket(app.url, { token: await app.issue() });
    expect(new Set(await subscribeAll(socket, upTo(256)))).toEqual(new Set(['subscribed']));
    expect(await subscribeAll(socket, [256])).toEqual(['TOO_MANY_WATCHERS']);
    expect(socket.frames.findLast(isError)).toMatchObject({ id: '256', retry_after_ms: 1_000 });
    socket.send({ type: 'unsubscribe', id: '7' });
    expect(await subscribeAll(socket, [256])).toEqual(['subscribed']);
  });

  test('as many things as its caller may with all sockets and polls; closing it frees its slots', async () => {
    await using app = await openSocketApp(address, { watchers_per_caller_max: 4 });
    const token = await app.issue();
    using one = openSocket(app.url, { token });
    using two = openSocket(app.url, { token });
    using other = openSocket(app.url, { token: await app.issue() });
    expect(await subscribeAll(one, [0, 1])).toEqual(['subscribed', 'subscribed']);
    expect(await subscribeAll(two, [0, 1, 2])).toEqual(['subscribed', 'subscribed', 'TOO_MANY_WATCHERS']);
    const seen = await waitFor(() => one.frames.find(({ type }) => type === 'body'), 'a body');
    const poll = await app.api.get(`${pathOfNumber('number-0')}?watch_index=${seen.body.watch.index}`, token);
    expect([poll.status, poll.body.code]).toEqual([429, 'TOO_MANY_WATCHERS']);
    expect(await subscribeAll(other, [0])).toEqual(['subscribed']);
    one.socket.close();
    await one.closed;
    expect(await subscribeAll(two, [2, 3, 4])).toEqual(['subscribed', 'subscribed', 'TOO_MANY_WATCHERS']);
  });

  test('as many things as all callers together may', async () => {
    await using app = await openSocketApp(address, { watchers_max: 3 });
    using one = openSocket(app.url, { token: await app.issue() });
    using two = openSocket(app.url, { token: await app.issue() });
    expect(await subscribeAll(one, [0, 1])).toEqual(['subscribed', 'subscribed']);
    expect(await subscribeAll(two, [0, 1])).toEqual(['subscribed', 'TOO_MANY_WATCHERS']);
  });
});

describe('the number of sockets is limited', () => {
  /** Returns what a client sees when its upgrade is refused. */
  async function refusalOf(url: string, headers: Record<string, string>) {
    const upgrade = { connection: 'upgrade', upgrade: 'websocket', 'sec-websocket-version': '13' };
    const more = { 'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==', 'sec-websocket-protocol': 'muster.watch.v1' };
    const response = await fetch(`${url}/watch`, { headers: { ...upgrade, ...more, ...headers } });
    const body = await response.json();
    return [response.status, body.code, response.headers.get('retry-after')];
  }

  test('for each caller: the upgrade or the first frame is refused', async () => {
    await using app = await openSocketApp(address, { sockets_per_caller_max: 2 });
    const token = await app.issue();
    const authorization = `Bearer ${token}`;
    using one = openSocket(app.url, { token });
    using two = openSocket(app.url, { token });
    await Promise.all([waitUntilReady(one), waitUntilReady(two)]);
    expect(await refusalOf(app.url, { authorization })).toEqual([429, 'TOO_MANY_SOCKETS', '5']);
    using late = openSocket(app.url);
    late.send({ type: 'authenticate', token });
    expect(await late.next(isError)).toMatchObject({ error: { code: 'TOO_MANY_SOCKETS' }, retry_after_ms: 5_000 });
    expect((await late.closed).code).toBe(4429);
    using other = openSocket(app.url, { token: await app.issue() });
    await waitUntilReady(other);
    one.socket.close();
    await one.closed;
    await waitFor(() => app.sockets.size === 2, 'the slot to be free');
    using three = openSocket(app.url, { token });
    await waitUntilReady(three);
    // Requests of the caller still work.
    expect((await app.api.get(pathOfNumber('a'), token)).status).toBe(200);
  });

  test('for each address until the sockets are authenticated', async () => {
    await using app = await openSocketApp(address, { sockets_per_caller_max: 2 });
    const sockets = [openSocket(app.url), openSocket(app.url)];
    await waitFor(() => app.sockets.size === 2, 'two sockets');
    expect(await refusalOf(app.url, {})).toEqual([429, 'TOO_MANY_SOCKETS', '5']);
    // From here on each socket counts for its own caller.
    for (const socket of sockets) {
      socket.send({ type: 'authenticate', token: await app.issue() });
      await waitUntilReady(socket);
    }
    using third = openSocket(app.url);
    await waitFor(() => app.sockets.size === 3, 'a third socket');
    for (const socket of [...sockets, third]) socket.socket.close();
  });

  test('for the whole service', async () => {
    await using app = await openSocketApp(address, { sockets_max: 2 });
    using one = openSocket(app.url, { token: await app.issue() });
    using two = openSocket(app.url, { token: await app.issue() });
    await Promise.all([waitUntilReady(one), waitUntilReady(two)]);
    const authorization = `Bearer ${await app.issue()}`;
    expect(await refusalOf(app.url, { authorization })).toEqual([429, 'TOO_MANY_SOCKETS', '5']);
  });
});

describe('the service keeps nothing', () => {
  const WATCHERS_MAX = 8;

  test('of 1,000 ended subscriptions, however they ended', async () => {
    await using app = await openSocketApp(address, { watchers_per_caller_max: WATCHERS_MAX });
    const token = await app.issue();
    using steady = openSocket(app.url, { token });
    const key = await steady.subscribe('it', pathOfNumber('leak'));
    const listeners = new Map(app.listeners);
    for (let round = 0; round < 10; round += 1) {
      // As many frames as a client may send at once.
      using socket = openSocket(app.url, { token });
      for (let time = 0; time < 100; time += 1) {
        const path =
          time % 3 === 0 ? pathOfNumber('leak') : `/cloud/games/01a1fd9a-cb99-73a7-8820-17ad6d1ab0a0/numbers/leak`;
        socket.send({ type: 'subscribe', id: `${time}`, path: time % 7 === 0 ? '/nothing' : path });
        socket.send({ type: 'unsubscribe', id: `${time}` });
        if (time % 10 === 0) await socket.next(({ type, id }) => type === 'unsubscribed' && id === `${time}`);
      }
      await socket.next(({ type, id }) => type === 'unsubscribed' && id === '99');
    }
    await waitFor(() => app.sockets.size === 1, 'the sockets to be closed');
    await waitFor(() => app.server.subscriberCount(key) <= 1, 'their topics to be unsubscribed');
    // A used channel is kept; the listeners of the sockets are not.
    const left = new Map(app.listeners);
    for (const [topic, count] of listeners) left.set(topic, (left.get(topic) ?? 0) - count);
    expect([...left].filter(([topic, count]) => count > (topic === 'number:leak' ? 1 : 0))).toEqual([]);
    // Exactly the slots that are not in use can be taken.
    using socket = openSocket(app.url, { token });
    const outcomes = await subscribeAll(socket, upTo(WATCHERS_MAX));
    expect(outcomes.filter((outcome) => outcome === 'subscribed')).toHaveLength(WATCHERS_MAX - 1);
  }, 300_000);

  test('of 1,000 sockets whose connections broke', async () => {
    await using app = await openSocketApp(address, { sockets_max: 1_000, watchers_max: 1_000 });
    const token = await app.issue();
    for (let round = 0; round < 10; round += 1) {
      const sockets = await Promise.all(upTo(100).map(() => openRawSocket(app.url, token)));
      for (const socket of sockets) socket.send({ type: 'subscribe', id: 'a', path: pathOfNumber('cut') });
      // Half of them break while they subscribe, the others while they receive.
      if (round % 2 === 0) {
        await waitFor(() => sockets.every(({ texts }) => texts.length >= 3), 'all sockets to receive a body');
        await app.increment('cut');
      }
      for (const socket of sockets) socket.cut();
    }
    await waitFor(() => app.sockets.size === 0, 'all sockets to be closed');
    expect(app.server.pendingWebSockets).toBe(0);
    await waitFor(() => [...app.listeners.values()].every((count) => count === 1), 'their listeners to be removed');
    const sockets = await Promise.all(upTo(1_000).map(() => openRawSocket(app.url, token)));
    for (const socket of sockets) socket.send({ type: 'subscribe', id: 'a', path: pathOfNumber('cut') });
    const isAdmitted = ({ texts }: { texts: string[] }) => texts.some((text) => text.includes('"subscribed"'));
    await waitFor(() => sockets.every(isAdmitted), 'all slots to be taken again');
    for (const socket of sockets) socket.cut();
  }, 300_000);
});
