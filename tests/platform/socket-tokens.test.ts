import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { openTestDatabase } from '../support/database/database.ts';
import { waitFor } from '../support/wait.ts';
import { isError, openSocket, type TestSocket } from '../support/watch/socket.ts';
import { GAME_ID, openSocketApp, pathOfNumber, type SocketApp } from '../support/watch/socket-app.ts';

const MINUTE_MS = 60_000;
/** Tolerance for clocks that disagree. */
const LEEWAY_MS = MINUTE_MS;

let opened: AsyncDisposableStack;
let app: SocketApp;
beforeAll(async () => {
  opened = new AsyncDisposableStack();
  const { address } = opened.use(await openTestDatabase());
  app = opened.use(await openSocketApp(address));
}, 300_000);
afterAll(() => opened.disposeAsync());

const newName = () => crypto.randomUUID();
const ofGame = (name: string) => `/cloud/games/${GAME_ID}/numbers/${name}`;
const newCaller = () => ({ kind: 'identity' as const, identity_id: crypto.randomUUID() });
const isReady = ({ type }: { type: string }) => type === 'ready';
const open = (token?: string) => openSocket(app.url, token === undefined ? {} : { token });
const bodiesOf = ({ frames }: TestSocket) =>
  frames.filter(({ type }) => type === 'body').map(({ body }) => body.number);

describe('a socket takes its token', () => {
  const WAYS: [string, (token: string) => TestSocket][] = [
    ['from the list of subprotocols', (token) => open(token)],
    [
      'from that list in any order',
      (token) => openSocket(app.url, { protocols: [`bearer.${token}`, 'muster.watch.v1'] }),
    ],
    [
      'from the Authorization header',
      (token) => openSocket(app.url, { headers: { authorization: `Bearer ${token}` } }),
    ],
    [
      'from its first frame',
      (token) => {
        const socket = open();
        socket.send({ type: 'authenticate', token });
        return socket;
      },
    ],
  ];
  for (const [way, connect] of WAYS) {
    test(way, async () => {
      using socket = connect(await app.issue());
      expect(await socket.next()).toEqual({ type: 'ready', subscriptions_max: 256 });
      expect(socket.socket.protocol).toBe('muster.watch.v1');
      expect(await socket.subscribe('a', pathOfNumber(newName()))).toBeString();
    });
  }

  test('from its first frame, before the other frames that it sends at once', async () => {
    using socket = open();
    socket.send({ type: 'authenticate', token: await app.issue() });
    socket.send({ type: 'subscribe', id: 'a', path: pathOfNumber(newName()) });
    expect((await socket.next()).type).toBe('ready');
    expect((await socket.next()).type).toBe('subscribed');
  });

  test('never from the query', async () => {
    const token = await app.issue();
    const address = `${app.url.replace('http', 'ws')}/watch?token=${token}&access_token=${token}&authorization=Bearer ${token}`;
    const socket = new WebSocket(address, ['muster.watch.v1']);
    const answer = Promise.withResolvers<string>();
    socket.onopen = () => socket.send(JSON.stringify({ type: 'subscribe', id: 'a', path: pathOfNumber(newName()) }));
    socket.onmessage = ({ data }) => answer.resolve(String(data));
    expect(JSON.parse(await answer.promise).error.code).toBe('API_UNAUTHORIZED');
    socket.close();
  });
});

describe('a socket without a token', () => {
  test('may watch no private view, and is closed after 5 s', async () => {
    using socket = open();
    const opened_at = performance.now();
    socket.send({ type: 'subscribe', id: 'a', path: pathOfNumber(newName()) });
    expect(await socket.next(isError)).toMatchObject({ id: 'a', error: { code: 'API_UNAUTHORIZED' } });
    expect(await socket.next(isError)).toMatchObject({ error: { code: 'API_UNAUTHORIZED' } });
    expect(await socket.closed).toEqual({ code: 4401, reason: 'API_UNAUTHORIZED' });
    // Only time tells this from an immediate close; a timer never fires early.
    expect(performance.now() - opened_at).toBeGreaterThan(4_500);
  }, 300_000);

  test('may stay if it watches a public view, and authenticate later', async () => {
    using silent = open();
    using socket = open();
    const name = newName();
    const key = await socket.subscribe('a', `/matchmaker/open/${name}`);
    // The socket without a subscription is closed at its deadline.
    expect((await silent.closed).code).toBe(4401);
    await app.increment(name);
    expect((await socket.next((frame) => frame.body?.number === 1)).key).toBe(key);
    socket.send({ type: 'authenticate', token: await app.issue() });
    await socket.next(isReady);
    expect(await socket.subscribe('b', pathOfNumber(name))).toBeString();
  }, 300_000);
});

describe('an invalid token', () => {
  test('refuses the upgrade, as a subprotocol and as a header', async () => {
    const good = await app.issue();
    const expired = await app.issue(newCaller(), -2 * LEEWAY_MS);
    for (const [token, code] of [
      ['none', 'TOKEN_INVALID'],
      [`${good}x`, 'TOKEN_INVALID'],
      [expired, 'CLAIMS_ENTITLEMENT_EXPIRED'],
    ] as const) {
      const ways: Record<string, string>[] = [
        { authorization: `Bearer ${token}`, 'sec-websocket-protocol': 'muster.watch.v1' },
        { 'sec-websocket-protocol': `muster.watch.v1, bearer.${token}` },
      ];
      for (const headers of ways) {
        const upgrade = { connection: 'upgrade', upgrade: 'websocket', 'sec-websocket-version': '13' };
        const key = { 'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==' };
        const response = await fetch(`${app.url}/watch`, { headers: { ...upgrade, ...key, ...headers } });
        expect([response.status, (await response.json()).code]).toEqual([401, code]);
      }
    }
  });

  test('in a frame ends all subscriptions and closes the socket', async () => {
    using socket = open(await app.issue());
    const name = newName();
    const key = await socket.subscribe('a', pathOfNumber(name));
    await socket.body(key);
    socket.send({ type: 'authenticate', token: 'none' });
    expect(await socket.next(isError)).toMatchObject({ id: 'a', error: { code: 'TOKEN_INVALID' } });
    expect(await socket.closed).toEqual({ code: 4401, reason: 'TOKEN_INVALID' });
  });

  test('may also be that of another caller, because the subscriptions were authorized for the first', async () => {
    using socket = open(await app.issue());
    await socket.subscribe('a', pathOfNumber(newName()));
    socket.send({ type: 'authenticate', token: await app.issue() });
    expect(await socket.next(isError)).toMatchObject({ id: 'a', error: { code: 'WATCH_BAD_FRAME' } });
    expect((await socket.closed).code).toBe(4401);
  });
});

describe('when a token expires', () => {
  test('sockets with a newer token of the same caller continue; the others close with 4401', async () => {
    const [ann, bob] = [newCaller(), newCaller()];
    using socket_of_ann = open(await app.issue(ann, MINUTE_MS));
    using socket_of_bob = open(await app.issue(bob, MINUTE_MS));
    const name = newName();
    const keys = [
      await socket_of_ann.subscribe('a', pathOfNumber(name)),
      await socket_of_bob.subscribe('b', pathOfNumber(name)),
    ];
    expect(keys[0]).toBe(keys[1] ?? '');
    socket_of_ann.send({ type: 'authenticate', token: await app.issue(ann, 60 * MINUTE_MS) });
    await socket_of_ann.next(isReady);
    app.clock.advance(MINUTE_MS + LEEWAY_MS + 1);
    expect(await socket_of_bob.next(isError)).toMatchObject({ id: 'b', error: { code: 'CLAIMS_ENTITLEMENT_EXPIRED' } });
    expect(await socket_of_bob.closed).toEqual({ code: 4401, reason: 'CLAIMS_ENTITLEMENT_EXPIRED' });
    await app.increment(name);
    await socket_of_ann.next((frame) => frame.body?.number === 1);
    expect(bodiesOf(socket_of_bob)).toEqual([0]);
  });
});

describe('when a caller loses the right to watch something', () => {
  test('its subscription ends with the error of the GET, and the others of the socket continue', async () => {
    const caller = newCaller();
    const token = await app.issue(caller);
    using socket = open(token);
    const [name, other] = [newName(), newName()];
    await socket.body(await socket.subscribe('a', ofGame(name)));
    const key = await socket.subscribe('b', pathOfNumber(other));
    await socket.body(key);
    await app.revoke(caller.identity_id, name);
    const { id, error } = await socket.next(isError);
    const refused = await app.api.get(ofGame(name), token);
    expect([id, error.code]).toEqual(['a', refused.body.code]);
    await app.increment(other);
    expect((await socket.body(key)).number).toBe(1);
  });

  test('the caller gets no later change, however long the check takes', async () => {
    const [leaving, staying] = [newCaller(), newCaller()];
    using socket = open(await app.issue(leaving));
    using other = open(await app.issue(staying));
    const name = newName();
    await socket.body(await socket.subscribe('a', ofGame(name)));
    await other.body(await other.subscribe('b', ofGame(name)));
    const release = app.holdChecks();
    await app.revoke(leaving.identity_id, name);
    // The other caller has the change while the check is still running.
    await other.next((frame) => frame.body?.number === 1);
    expect(bodiesOf(socket)).toEqual([0]);
    release();
    expect((await socket.next(isError)).error.code).toBe('GAME_NOT_FOUND');
    await app.increment(name);
    await other.next((frame) => frame.body?.number === 2);
    expect(bodiesOf(socket)).toEqual([0]);
    await waitFor(() => app.listeners.get(`rights:${leaving.identity_id}`) === undefined, 'the listener to be removed');
  });

  test('a subscription that stays authorized gets the changes that came during the check', async () => {
    const caller = newCaller();
    using socket = open(await app.issue(caller));
    using other = open(await app.issue());
    const name = newName();
    await socket.body(await socket.subscribe('a', ofGame(name)));
    await other.body(await other.subscribe('b', ofGame(name)));
    const release = app.holdChecks();
    await app.touchRights(caller.identity_id);
    await app.increment(name);
    await other.next((frame) => frame.body?.number === 1);
    expect(bodiesOf(socket)).toEqual([0]);
    release();
    await socket.next((frame) => frame.body?.number === 1);
    await app.increment(name);
    await socket.next((frame) => frame.body?.number === 2);
    expect(bodiesOf(socket)).toEqual([0, 1, 2]);
  });

  test('socket: a right that is lost during the authorization of a subscription ends it before its first body', async () => {
    const caller = newCaller();
    using socket = open(await app.issue(caller));
    const name = newName();
    const authorizations = app.holdAuthorizations();
    socket.send({ type: 'subscribe', id: 'a', path: ofGame(name) });
    await waitFor(() => authorizations.held === 1, 'the authorization to run');
    await app.revoke(caller.identity_id, name);
    authorizations.release();
    expect(await socket.next(isError)).toMatchObject({ id: 'a', error: { code: 'GAME_NOT_FOUND' } });
    expect(bodiesOf(socket)).toEqual([]);
    expect(app.listeners.get(`rights:${caller.identity_id}`)).toBeUndefined();
  });

  test('poll: a right that is lost during its authorization refuses it', async () => {
    const caller = newCaller();
    const token = await app.issue(caller);
    const name = newName();
    const { index } = (await app.api.ok('GET', ofGame(name), { token })).watch;
    using other = open(await app.issue());
    await other.body(await other.subscribe('b', pathOfNumber(name)));
    const authorizations = app.holdAuthorizations();
    const poll = app.api.get(`${ofGame(name)}?watch_index=${index}`, token);
    await waitFor(() => authorizations.held === 1, 'the authorization to run');
    await app.revoke(caller.identity_id, name);
    // The notification of the revocation has come, too.
    await other.next((frame) => frame.body?.number === 1);
    authorizations.release();
    expect((await poll).body.code).toBe('GAME_NOT_FOUND');
    expect(app.listeners.get(`rights:${caller.identity_id}`)).toBeUndefined();
  });

  test('socket: a subscription that ends during its authorization leaves nothing behind', async () => {
    const caller = newCaller();
    using socket = open(await app.issue(caller));
    const authorizations = app.holdAuthorizations();
    socket.send({ type: 'subscribe', id: 'a', path: ofGame(newName()) });
    await waitFor(() => authorizations.held === 1, 'the authorization to run');
    socket.send({ type: 'unsubscribe', id: 'a' });
    await socket.next(({ type }) => type === 'unsubscribed');
    authorizations.release();
    await waitFor(() => authorizations.held === 2, 'the rights to be checked again');
    await socket.subscribe('b', pathOfNumber(newName()));
    // The second subscription has a listener of its own.
    await waitFor(
      () => app.listeners.get(`rights:${caller.identity_id}`) === 1,
      'the listener of the first to be removed',
    );
  });
});
