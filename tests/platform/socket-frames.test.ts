import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { openTestDatabase } from '../support/database.ts';
import { openSocket, type TestSocket } from '../support/socket.ts';
import { openSocketApp, type SocketApp } from '../support/socket-app.ts';

let opened: AsyncDisposableStack;
let app: SocketApp;
let token: string;
beforeAll(async () => {
  opened = new AsyncDisposableStack();
  const { address } = opened.use(await openTestDatabase());
  app = opened.use(await openSocketApp(address));
  token = await app.issue();
}, 90_000);
afterAll(() => opened.disposeAsync());

const newPath = () => `/matchmaker/words/${crypto.randomUUID()}`;
const nameOf = (path: string) => path.split('/').at(-1) ?? '';
const open = () => openSocket(app.url, { token });
const refusal = (socket: TestSocket) => socket.next(({ type }) => type === 'error');

const X64 = 'x'.repeat(64);
/** What is sent, and the id that it is refused with. */
const BAD: [string, string | Uint8Array<ArrayBuffer>, string?][] = [
  ['nothing', ''],
  ['no JSON', 'hello'],
  ['half of one', '{"type":"ping"'],
  ['two', '{"type":"ping"}{"type":"ping"}'],
  ['binary', new TextEncoder().encode('{"type":"ping"}')],
  ['null', 'null'],
  ['a number', '7'],
  ['a text', '"ping"'],
  ['a list', '[{"type":"ping"}]'],
  ['no type', '{}'],
  ['a type that is null', '{"type":null}'],
  ['a type that is a list', '{"type":["ping"]}'],
  ['a type that cannot be made a text', '{"type":{"toString":1,"valueOf":1}}'],
  ['a type that there is not', '{"type":"publish"}'],
  ['a type that there is not, with an id', '{"type":"publish","id":"a"}', 'a'],
  ['a type that every object has', '{"type":"constructor"}'],
  ['a type of the service', '{"type":"ready"}'],
  ['a type in other letters', '{"type":"PING"}'],
  ['subscribe without an id', '{"type":"subscribe","path":"/matchmaker/words/a"}'],
  ['subscribe with an id that is a number', '{"type":"subscribe","id":1,"path":"/matchmaker/words/a"}'],
  ['subscribe with an empty id', '{"type":"subscribe","id":"","path":"/matchmaker/words/a"}'],
  ['subscribe with a long id', `{"type":"subscribe","id":"${'x'.repeat(65)}","path":"/matchmaker/words/a"}`],
  ['subscribe without a path', '{"type":"subscribe","id":"a"}', 'a'],
  ['subscribe without a path, with an id as long as can be', `{"type":"subscribe","id":"${X64}"}`, X64],
  ['subscribe with an id that is in use', '{"type":"subscribe","id":"mine"}'],
  [
    'subscribe with a path that is an address',
    '{"type":"subscribe","id":"a","path":"http://muster/matchmaker/words/a"}',
    'a',
  ],
  ['subscribe with an empty path', '{"type":"subscribe","id":"a","path":""}', 'a'],
  ['subscribe with a long path', `{"type":"subscribe","id":"a","path":"/${'x'.repeat(4_096)}"}`, 'a'],
  [
    'subscribe with a number for an index',
    '{"type":"subscribe","id":"a","path":"/matchmaker/words/a","watch_index":1}',
    'a',
  ],
  [
    'subscribe with a long index',
    `{"type":"subscribe","id":"a","path":"/matchmaker/words/a","watch_index":"${'1'.repeat(65)}"}`,
    'a',
  ],
  ['unsubscribe without an id', '{"type":"unsubscribe"}'],
  ['unsubscribe with a list of ids', '{"type":"unsubscribe","id":["a"]}'],
  ['authenticate without a token', '{"type":"authenticate"}'],
  ['authenticate with a token that is an object', '{"type":"authenticate","token":{}}'],
  ['authenticate with a long token', `{"type":"authenticate","token":"${'x'.repeat(8_193)}"}`],
];

describe('a frame that cannot be read is refused, and the socket goes on', () => {
  test.each(BAD.map(([what, frame, id]) => [what, frame, id] as const))('%s', async (_, frame, refused_id) => {
    using socket = open();
    const path = newPath();
    const key = await socket.subscribe('mine', path);
    await socket.body(key);
    socket.socket.send(frame);
    const { id, error } = await refusal(socket);
    expect([id, error.code]).toEqual([refused_id, 'WATCH_BAD_FRAME']);
    await app.raise(nameOf(path));
    expect((await socket.body(key)).word).toBe(1);
  });

  test('members that it does not need mean nothing', async () => {
    using socket = open();
    socket.send({ type: 'ping', id: 7, more: [] });
    expect((await socket.next(({ type }) => type === 'pong')).type).toBe('pong');
    socket.send({ type: 'subscribe', id: '\ud800"}', path: newPath(), key: 'k1', __proto__: null });
    expect((await socket.next(({ type }) => type === 'subscribed')).id).toBe('\ud800"}');
  });

  test('but a frame that is too long closes it with 1009, and one as long as that does not', async () => {
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

  test('and 10,000 at once close it with 4429, without effect on other sockets', async () => {
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
    await app.raise(nameOf(path));
    expect((await other.body(key)).word).toBe(1);
  });
});

describe('an id', () => {
  test('that is in use is refused without harm to the subscription that has it', async () => {
    using socket = open();
    const path = newPath();
    const key = await socket.subscribe('a', path);
    await socket.body(key);
    socket.send({ type: 'subscribe', id: 'a', path: newPath() });
    const { id, error } = await refusal(socket);
    expect([id, error.code]).toEqual([undefined, 'WATCH_BAD_FRAME']);
    await app.raise(nameOf(path));
    expect((await socket.body(key)).word).toBe(1);
  });

  test('is in use from the moment it was sent, and free when it is unsubscribed', async () => {
    using socket = open();
    const [first, second] = [newPath(), newPath()];
    socket.send({ type: 'subscribe', id: 'a', path: first });
    socket.send({ type: 'subscribe', id: 'a', path: second });
    socket.send({ type: 'unsubscribe', id: 'a' });
    await socket.next(({ type }) => type === 'unsubscribed');
    expect(socket.frames.filter(({ type }) => type === 'error')).toHaveLength(1);
    const key = await socket.subscribe('a', second);
    expect((await socket.body(key)).word).toBe(0);
    // Of the first nothing is left.
    await app.raise(nameOf(first));
    await app.raise(nameOf(second));
    expect((await socket.body(key)).word).toBe(1);
    const keys = socket.frames.filter(({ type }) => type === 'body').map((frame) => frame.key);
    expect(keys.slice(-2)).toEqual([key, key]);
  });

  test('that a subscription was refused under is free', async () => {
    using socket = open();
    socket.send({ type: 'subscribe', id: 'a', path: '/nothing' });
    expect((await refusal(socket)).id).toBe('a');
    expect(await socket.subscribe('a', newPath())).toBeString();
  });

  test('that is unknown is unsubscribed without an error', async () => {
    using socket = open();
    socket.send({ type: 'unsubscribe', id: 'nobody' });
    expect(await socket.next(({ type }) => type === 'unsubscribed')).toEqual({ type: 'unsubscribed', id: 'nobody' });
  });

  test('cannot be a second one for the same thing', async () => {
    using socket = open();
    const path = newPath();
    await socket.subscribe('a', path);
    for (const same of [path, `${path}?`, `${path}?more=1`, path.replace('words', './words')]) {
      socket.send({ type: 'subscribe', id: 'b', path: same });
      const { id, error } = await refusal(socket);
      expect([id, error.code]).toEqual(['b', 'WATCH_BAD_FRAME']);
    }
    using other = open();
    expect(await other.subscribe('b', path)).toBeString();
  });
});

test('a body that was on its way when a client subscribed again to the same comes before that, not after', async () => {
  using steady = open();
  using socket = open();
  const path = newPath();
  await steady.subscribe('it', path);
  for (let round = 0; round < 20; round += 1) {
    const key = await socket.subscribe('a', path);
    // What was committed before may be news to the service only now: then the first body is followed by another.
    const seen = [(await socket.body(key)).word];
    while (seen.at(-1) < 2 * round) seen.push((await socket.body(key)).word);
    expect(seen).toEqual([...new Set(seen)].sort((one, other) => one - other));
    expect(seen.at(-1)).toBe(2 * round);
    const raising = Promise.all([app.raise(nameOf(path)), app.raise(nameOf(path))]);
    await socket.body(key);
    socket.send({ type: 'unsubscribe', id: 'a' });
    await socket.next(({ type }) => type === 'unsubscribed');
    await raising;
    const after = socket.frames.slice(socket.frames.findLastIndex(({ type }) => type === 'unsubscribed') + 1);
    expect(after.filter(({ type }) => type === 'body')).toEqual([]);
  }
});
