import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { openTestDatabase } from '../support/database/database.ts';
import { openSocket, type TestSocket } from '../support/watch/socket.ts';
import { openSocketApp, type SocketApp } from '../support/watch/socket-app.ts';

let opened: AsyncDisposableStack;
let app: SocketApp;
let token: string;
beforeAll(async () => {
  opened = new AsyncDisposableStack();
  const { address } = opened.use(await openTestDatabase());
  app = opened.use(await openSocketApp(address));
  token = await app.issue();
}, 300_000);
afterAll(() => opened.disposeAsync());

const newPath = () => `/matchmaker/numbers/${crypto.randomUUID()}`;
const nameOf = (path: string) => path.split('/').at(-1) ?? '';
const open = () => openSocket(app.url, { token });
const refusal = (socket: TestSocket) => socket.next(({ type }) => type === 'error');

const LONGEST_ID = 'x'.repeat(64);
/** Invalid frames, each with the id in its error. */
const BAD: [string, string | Uint8Array<ArrayBuffer>, string?][] = [
  ['nothing', ''],
  ['no JSON', 'hello'],
  ['truncated JSON', '{"type":"ping"'],
  ['two frames in one', '{"type":"ping"}{"type":"ping"}'],
  ['binary', new TextEncoder().encode('{"type":"ping"}')],
  ['null', 'null'],
  ['a number', '7'],
  ['a text', '"ping"'],
  ['a list', '[{"type":"ping"}]'],
  ['no type', '{}'],
  ['a type that is null', '{"type":null}'],
  ['a type that is a list', '{"type":["ping"]}'],
  ['a type that has no string form', '{"type":{"toString":1,"valueOf":1}}'],
  ['an unknown type', '{"type":"publish"}'],
  ['an unknown type with an id', '{"type":"publish","id":"a"}', 'a'],
  ['a type that is a property of every object', '{"type":"constructor"}'],
  ['a type that only the service sends', '{"type":"ready"}'],
  ['a type in upper case', '{"type":"PING"}'],
  ['subscribe without an id', '{"type":"subscribe","path":"/matchmaker/numbers/a"}'],
  ['subscribe with an id that is a number', '{"type":"subscribe","id":1,"path":"/matchmaker/numbers/a"}'],
  ['subscribe with an empty id', '{"type":"subscribe","id":"","path":"/matchmaker/numbers/a"}'],
  ['subscribe with a long id', `{"type":"subscribe","id":"${'x'.repeat(65)}","path":"/matchmaker/numbers/a"}`],
  ['subscribe without a path', '{"type":"subscribe","id":"a"}', 'a'],
  [
    'subscribe without a path, with an id of the maximum length',
    `{"type":"subscribe","id":"${LONGEST_ID}"}`,
    LONGEST_ID,
  ],
  ['subscribe with an id that is in use', '{"type":"subscribe","id":"mine"}'],
  [
    'subscribe with a path that is a whole address',
    '{"type":"subscribe","id":"a","path":"http://muster/matchmaker/numbers/a"}',
    'a',
  ],
  ['subscribe with an empty path', '{"type":"subscribe","id":"a","path":""}', 'a'],
  ['subscribe with a long path', `{"type":"subscribe","id":"a","path":"/${'x'.repeat(4_096)}"}`, 'a'],
  [
    'subscribe with a number for an index',
    '{"type":"subscribe","id":"a","path":"/matchmaker/numbers/a","watch_index":1}',
    'a',
  ],
  [
    'subscribe with a long index',
    `{"type":"subscribe","id":"a","path":"/matchmaker/numbers/a","watch_index":"${'1'.repeat(65)}"}`,
    'a',
  ],
  ['unsubscribe without an id', '{"type":"unsubscribe"}'],
  ['unsubscribe with a list of ids', '{"type":"unsubscribe","id":["a"]}'],
  ['authenticate without a token', '{"type":"authenticate"}'],
  ['authenticate with a token that is an object', '{"type":"authenticate","token":{}}'],
  ['authenticate with a long token', `{"type":"authenticate","token":"${'x'.repeat(8_193)}"}`],
];

describe('socket: an invalid frame is refused, and the socket stays open', () => {
  test.each(BAD.map(([what, frame, id]) => [what, frame, id] as const))('%s', async (_, frame, refused_id) => {
    using socket = open();
    const path = newPath();
    const key = await socket.subscribe('mine', path);
    await socket.body(key);
    socket.socket.send(frame);
    const { id, error } = await refusal(socket);
    expect([id, error.code]).toEqual([refused_id, 'WATCH_BAD_FRAME']);
    await app.increment(nameOf(path));
    expect((await socket.body(key)).number).toBe(1);
  });

  test('unknown members of a frame are ignored', async () => {
    using socket = open();
    socket.send({ type: 'ping', id: 7, more: [] });
    expect((await socket.next(({ type }) => type === 'pong')).type).toBe('pong');
    socket.send({ type: 'subscribe', id: '\ud800"}', path: newPath(), key: 'k1', __proto__: null });
    expect((await socket.next(({ type }) => type === 'subscribed')).id).toBe('\ud800"}');
  });

  test('a frame above the maximum length closes the socket with 1009', async () => {
    using socket = open();
    const frame = (length: number) => {
      const start = '{"type":"ping","filling":"';
      return `${start}${'x'.repeat(length - start.length - 2)}"}`;
    };
    socket.send(frame(16_384));
    await socket.next(({ type }) => type === 'pong');
    socket.send(frame(16_385));
    expect((await socket.closed).code).toBe(1009);
  });

  test('10,000 frames at once close the socket with 4429, without effect on other sockets', async () => {
    using other = open();
    const path = newPath();
    const key = await other.subscribe('it', path);
    await other.body(key);
    using socket = open();
    await socket.next(({ type }) => type === 'ready');
    for (let count = 0; count < 10_000; count += 1) socket.send({ type: 'ping' });
    expect(await socket.closed).toEqual({ code: 4429, reason: 'WATCH_TOO_MANY_FRAMES' });
    const answered = socket.frames.filter(({ type }) => type === 'pong').length;
    expect(answered).toBeGreaterThanOrEqual(300);
    expect(answered).toBeLessThan(400);
    const [refused, ...more] = socket.frames.filter(({ type }) => type === 'error');
    expect([refused.error.code, refused.retry_after_ms, more]).toEqual(['WATCH_TOO_MANY_FRAMES', 1_000, []]);
    await app.increment(nameOf(path));
    expect((await other.body(key)).number).toBe(1);
  });
});

describe('the id of a subscription', () => {
  test('is refused if another subscription has it, which continues', async () => {
    using socket = open();
    const path = newPath();
    const key = await socket.subscribe('a', path);
    await socket.body(key);
    socket.send({ type: 'subscribe', id: 'a', path: newPath() });
    const { id, error } = await refusal(socket);
    expect([id, error.code]).toEqual([undefined, 'WATCH_BAD_FRAME']);
    await app.increment(nameOf(path));
    expect((await socket.body(key)).number).toBe(1);
  });

  test('is in use as soon as it is sent, and free once it is unsubscribed', async () => {
    using socket = open();
    const [first, second] = [newPath(), newPath()];
    socket.send({ type: 'subscribe', id: 'a', path: first });
    socket.send({ type: 'subscribe', id: 'a', path: second });
    socket.send({ type: 'unsubscribe', id: 'a' });
    await socket.next(({ type }) => type === 'unsubscribed');
    expect(socket.frames.filter(({ type }) => type === 'error')).toHaveLength(1);
    const key = await socket.subscribe('a', second);
    expect((await socket.body(key)).number).toBe(0);
    // The first subscription was never made.
    await app.increment(nameOf(first));
    await app.increment(nameOf(second));
    expect((await socket.body(key)).number).toBe(1);
    const keys = socket.frames.filter(({ type }) => type === 'body').map((frame) => frame.key);
    expect(keys.slice(-2)).toEqual([key, key]);
  });

  test('is free after its subscription was refused', async () => {
    using socket = open();
    socket.send({ type: 'subscribe', id: 'a', path: '/nothing' });
    expect((await refusal(socket)).id).toBe('a');
    expect(await socket.subscribe('a', newPath())).toBeString();
  });

  test('may be unsubscribed without a subscription', async () => {
    using socket = open();
    socket.send({ type: 'unsubscribe', id: 'unknown' });
    expect(await socket.next(({ type }) => type === 'unsubscribed')).toEqual({ type: 'unsubscribed', id: 'unknown' });
  });

  test('is refused if the socket already watches the same thing', async () => {
    using socket = open();
    const path = newPath();
    await socket.subscribe('a', path);
    for (const same of [path, `${path}?`, `${path}?more=1`, path.replace('numbers', './numbers')]) {
      socket.send({ type: 'subscribe', id: 'b', path: same });
      const { id, error } = await refusal(socket);
      expect([id, error.code]).toEqual(['b', 'WATCH_BAD_FRAME']);
    }
    using other = open();
    expect(await other.subscribe('b', path)).toBeString();
  });
});

test('socket: after a client subscribes to a view again, it gets no body that was sent for the earlier subscription', async () => {
  using steady = open();
  using socket = open();
  const path = newPath();
  await steady.subscribe('it', path);
  for (let round = 0; round < 20; round += 1) {
    const key = await socket.subscribe('a', path);
    // The service may be notified of the last commit only now; then a second body follows the first.
    const seen = [(await socket.body(key)).number];
    while (seen.at(-1) < 2 * round) seen.push((await socket.body(key)).number);
    expect(seen).toEqual([...new Set(seen)].sort((one, other) => one - other));
    expect(seen.at(-1)).toBe(2 * round);
    const incrementing = Promise.all([app.increment(nameOf(path)), app.increment(nameOf(path))]);
    await socket.body(key);
    socket.send({ type: 'unsubscribe', id: 'a' });
    await socket.next(({ type }) => type === 'unsubscribed');
    await incrementing;
    const after = socket.frames.slice(socket.frames.findLastIndex(({ type }) => type === 'unsubscribed') + 1);
    expect(after.filter(({ type }) => type === 'body')).toEqual([]);
  }
});
