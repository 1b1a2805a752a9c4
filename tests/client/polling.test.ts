import { beforeAll, beforeEach, describe, expect, test } from 'bun:test';
import type { ClientOptions } from '../../src/client/client.ts';
import { shareClientProxy, watchWith } from '../support/client.ts';
import { makeGame, type TestGame } from '../support/game.ts';
import { makeMember } from '../support/people.ts';
import { shareService } from '../support/suite.ts';
import { waitFor } from '../support/wait.ts';

const muster = shareService({ MUSTER_WATCH_HOLD_MS: '1000', MUSTER_WATCHERS_PER_CALLER_MAX: '2' });
const proxied = shareClientProxy(muster);
let game: TestGame;
let path: string;
beforeAll(async () => {
  game = await makeGame(muster.api, muster.administrator_token);
  path = `/cloud/games/${game.game_id}`;
});

const open = (options: Partial<ClientOptions> = {}) => proxied.open({ token: muster.administrator_token, ...options });

async function change() {
  const body = { display_name: crypto.randomUUID(), config: {} };
  const { version_id } = await muster.api.ok('POST', `${path}/versions`, { token: muster.administrator_token, body });
  return (seen: { game: { versions: { version_id: string }[] } }) =>
    seen.game.versions.some((version) => version.version_id === version_id);
}

/** Returns the statuses with which a route was answered so far. */
const servedOf = (route: string) =>
  muster.events.flatMap((event) => (event.event === 'request_served' && event.route === route ? [event.status] : []));
const GAME = '/cloud/games/:game_id';

describe('client: behind a proxy without WebSockets', () => {
  beforeEach(() => proxied.proxy.refuseWebSockets(502));

  test.each([426, 429, 502])('delivers the current body and each change once (%d)', async (status) => {
    proxied.proxy.refuseWebSockets(status);
    const client = open();
    const watcher = watchWith(client, path);
    const other = watchWith(client, path);
    await Promise.all([watcher.next(), other.next()]);
    for (let changes = 0; changes < 3; changes += 1) {
      const isThere = await change();
      expect(await other.next(isThere)).toEqual(await watcher.next(isThere));
    }
    // A poll that ends without a change delivers nothing.
    const polls = servedOf(GAME).length;
    await waitFor(() => servedOf(GAME).length > polls, 'a poll to end');
    expect(new Set(watcher.bodies.map(({ watch }) => watch.index)).size).toBe(watcher.bodies.length);
  });

  test('requests no new token while polls with the present one are accepted', async () => {
    const counts = { tokens: 0, sockets: 0 };
    const token = () => {
      counts.tokens += 1;
      return muster.administrator_token;
    };
    const openSocket = (...given: Parameters<NonNullable<ClientOptions['openSocket']>>) => {
      counts.sockets += 1;
      return new WebSocket(...given);
    };
    const watcher = watchWith(open({ token, openSocket }), path);
    await watcher.next();
    const before = { ...counts };
    await waitFor(() => counts.sockets > before.sockets + 3, 'further sockets');
    expect(counts.tokens).toBe(before.tokens);
    await watcher.next(await change());
  });

  test('returns to a WebSocket when one opens, without missing a body', async () => {
    const client = open();
    const watcher = watchWith(client, path);
    await watcher.next();
    const sockets = servedOf('/watch').length;
    proxied.proxy.refuseWebSockets(undefined);
    await waitFor(() => servedOf('/watch').length > sockets, 'a WebSocket');
    const other = watchWith(client, '/cloud/games');
    await other.next();
    // The hold time of a poll passes without a poll, as soon as the last one has ended.
    const polls = await waitFor(async () => {
      const before = servedOf(GAME).length;
      await Bun.sleep(1_500);
      return servedOf(GAME).length === before && before;
    }, 'the polls to end');
    await watcher.next(await change());
    expect(servedOf(GAME).length).toBe(polls);
  });

  test('reports the refusal of the GET once', async () => {
    const member = await makeMember(muster, game);
    const client = open({ token: member.token });
    const watcher = watchWith(client, path);
    await watcher.next();
    await muster.api.ok('POST', `/group/groups/${game.group_id}/kick/${member.identity_id}`, {
      token: muster.administrator_token,
      body: {},
    });
    const { body } = await muster.api.get(path, member.token);
    expect(await watcher.refusal()).toEqual({ ...body, ray_id: expect.any(String) });
    const nothing = watchWith(client, '/cloud/bootstrap');
    expect(await nothing.refusal()).toMatchObject({ code: 'WATCH_NOT_WATCHABLE' });
    expect([watcher.errors.length, nothing.errors.length]).toEqual([1, 1]);
  });
});

test('client: a watcher over the limit waits for retry_after_ms, then gets the body', async () => {
  const client = open();
  const watchers = ['/cloud/games', `${path}/builds`].map((one) => watchWith(client, one));
  await Promise.all(watchers.map((watcher) => watcher.next()));
  proxied.proxy.refuseWebSockets(502);
  const other = open();
  const delays: string[] = [];
  const waiting = watchWith(other, path, { onDelayed: ({ code }) => void delays.push(code) });
  // A poll without an index takes no slot; one that waits for the next body does.
  await waiting.next();
  const countRefusals = () => servedOf(GAME).filter((status) => status === 429).length;
  const before = countRefusals();
  // A moment just before the refusal.
  let began = performance.now();
  await waitFor(() => {
    if (countRefusals() > before) return true;
    began = performance.now();
    return false;
  }, 'a refusal');
  const refusals = countRefusals();
  for (const watcher of watchers) watcher.stop();
  // By now the client has read the refusal. That the network is back must not shorten its pause.
  await Bun.sleep(300);
  dispatchEvent(new Event('online'));
  await waiting.next(await change());
  // Only time tells this from a pause that was cut short; a timer never fires early.
  expect(performance.now() - began).toBeGreaterThan(900);
  expect(countRefusals()).toBe(refusals);
  expect(waiting.errors).toEqual([]);
  expect(new Set(delays)).toEqual(new Set(['TOO_MANY_WATCHERS']));
  other.close();
});
