import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { Type } from '@sinclair/typebox';
import { watched } from '../../src/platform/http/route.ts';
import { watchState } from '../../src/platform/watch/views.ts';
import { openTestDatabase } from '../support/database/database.ts';
import { waitFor } from '../support/wait.ts';
import { openSocket } from '../support/watch/socket.ts';
import { GAME_ID, openSocketApp, type SocketApp } from '../support/watch/socket-app.ts';

const SECRET = 'select password from /etc/passwd';
const FAULT = new Error(SECRET);

/** How many more reads of the broken view fail. */
let failing_reads = 0;
const broken = {
  topics: (name: string) => [`number:${name}`],
  async read() {
    failing_reads -= 1;
    if (failing_reads >= 0) throw FAULT;
    return 7;
  },
};
const OPTIONS = {
  summary: 'For a test.',
  allow: ['identity'],
  free_params: ['name'],
  response: Type.Object({ number: Type.Integer() }),
} as const;
const ROUTES = [
  watched('/matchmaker/broken/:name', OPTIONS, ({ params }) =>
    watchState(broken, params.name, (number) => ({ number })),
  ),
  watched('/matchmaker/refused/:name', OPTIONS, () => {
    throw FAULT;
  }),
];

let opened: AsyncDisposableStack;
let app: SocketApp;
beforeAll(async () => {
  opened = new AsyncDisposableStack();
  const { address } = opened.use(await openTestDatabase());
  app = opened.use(await openSocketApp(address, { routesOf: () => ROUTES }));
}, 300_000);
afterAll(() => opened.disposeAsync());

const failuresOf = (name: 'request_failed' | 'watch_failed') => app.events.filter(({ event }) => event === name);

describe('a fault of the service that a socket meets is in the log', () => {
  test('with the ray id of the error that the client gets, which has no details', async () => {
    using socket = openSocket(app.url, { token: await app.issue() });
    socket.send({ type: 'subscribe', id: 'a', path: '/matchmaker/refused/any' });
    const { error } = await socket.next(({ type }) => type === 'error');
    expect(error).toMatchObject({ code: 'ERROR', ray_id: expect.any(String) });
    expect(JSON.stringify(error)).not.toContain(SECRET);
    const { ray_id } = error;
    expect(failuresOf('request_failed')).toEqual([
      { event: 'request_failed', ray_id, method: 'GET', route: '/watch', cause: FAULT },
    ]);
  });

  test('once while a view cannot be read, and again when it fails later', async () => {
    using socket = openSocket(app.url, { token: await app.issue() });
    const name = crypto.randomUUID();
    failing_reads = 2;
    const key = await socket.subscribe('a', `/matchmaker/broken/${name}`);
    expect(await socket.body(key)).toMatchObject({ number: 7 });
    const failure = { event: 'watch_failed' as const, watched: expect.stringContaining(name), cause: FAULT };
    expect(failuresOf('watch_failed')).toEqual([failure]);
    // The read for all listeners, and that of the audience.
    failing_reads = 2;
    await app.increment(name);
    await waitFor(() => failuresOf('watch_failed').length === 2, 'the second report');
    expect(failuresOf('watch_failed')).toEqual([failure, failure]);
  });

  test('once while a subscription cannot be authorized again', async () => {
    const identity_id = crypto.randomUUID();
    using socket = openSocket(app.url, { token: await app.issue({ kind: 'identity', identity_id }) });
    const path = `/cloud/games/${GAME_ID}/numbers/${crypto.randomUUID()}`;
    await socket.body(await socket.subscribe('a', path));
    const before = failuresOf('watch_failed').length;
    const repair = app.failChecks(FAULT);
    await app.touchRights(identity_id);
    await waitFor(() => failuresOf('watch_failed').length > before, 'the report');
    await app.touchRights(identity_id);
    repair();
    await app.touchRights(identity_id);
    expect(failuresOf('watch_failed').slice(before)).toEqual([{ event: 'watch_failed', watched: path, cause: FAULT }]);
  });
});
