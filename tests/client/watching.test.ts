import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'bun:test';
import type { Client, ClientOptions } from '../../src/client/client.ts';
import type { Refusal } from '../../src/client/wire.ts';
import { connect, QUICK, watchWith } from '../support/client.ts';
import { makeGame, type TestGame } from '../support/game.ts';
import { openTcpProxy } from '../support/network/tcp-proxy.ts';
import { makeMember } from '../support/people.ts';
import { shareService } from '../support/suite.ts';
import { waitFor } from '../support/wait.ts';

const muster = shareService({ MUSTER_WATCHERS_PER_CALLER_MAX: '4' });
let game: TestGame;
let path: string;
let environment: string;
let others: string[];
let client: Client;
beforeAll(async () => {
  game = await makeGame(muster.api, muster.administrator_token);
  path = `/cloud/games/${game.game_id}`;
  environment = `/games/${game.game_id}/environments/${game.namespace_id}`;
  others = ['/cloud/games', `${path}/builds`, `${path}/namespaces/${game.namespace_id}/analytics/matchmaker/live`];
});
beforeEach(() => {
  client = open();
});
afterEach(() => client.close());

function open(options: Partial<ClientOptions> = {}): Client {
  return connect({ url: muster.config.public_url, token: muster.administrator_token, timing: QUICK, ...options });
}

/** Changes the game, and returns the name of its new version. */
async function change(): Promise<string> {
  const display_name = crypto.randomUUID();
  await muster.api.ok('POST', `${path}/versions`, {
    token: muster.administrator_token,
    body: { display_name, config: {} },
  });
  return display_name;
}
const shows = (name: string) => (body: { game: { versions: { display_name: string }[] } }) =>
  body.game.versions.some(({ display_name }) => display_name === name);

describe('client: refusals', () => {
  const REFUSALS: [string, string, () => string | undefined, string][] = [
    ['a path without a route', '/nothing/here', () => muster.administrator_token, 'API_NOT_FOUND'],
    ['a path that cannot be watched', '/cloud/bootstrap', () => muster.administrator_token, 'WATCH_NOT_WATCHABLE'],
    ['a token of another kind', '/cloud/games', () => game.public_token, 'CLAIMS_MISSING_ENTITLEMENT'],
    ['an invalid token', '/cloud/games', () => 'nonsense', 'TOKEN_INVALID'],
    ['a token that no header can have', '/cloud/games', () => 'non sense', 'TOKEN_INVALID'],
    ['a token that no request can have', '/cloud/games', () => '“nonsense”', 'TOKEN_INVALID'],
    ['no token', '/cloud/games', () => undefined, 'API_UNAUTHORIZED'],
  ];
  test.each(REFUSALS)('%s: reported once', async (_, given_path, readToken, code) => {
    client = open({ token: readToken() });
    const watcher = watchWith(client, given_path);
    expect(await watcher.refusal()).toMatchObject({ code, message: expect.any(String) });
    // The client does not subscribe again: a later subscription is refused later.
    const later = watchWith(client, given_path);
    await later.refusal();
    expect(watcher.errors).toHaveLength(1);
    expect(watcher.bodies).toEqual([]);
  });

  test('a token function that returns only bad tokens: reported once', async () => {
    client = open({ token: () => 'nonsense' });
    expect(await watchWith(client, '/cloud/games').refusal()).toMatchObject({ code: 'TOKEN_INVALID' });
  });

  test('a removed member gets the refusal of the GET; other subscriptions continue', async () => {
    const member = await makeMember(muster, game);
    client = open({ token: member.token });
    const games = watchWith(client, '/cloud/games');
    const watcher = watchWith(client, path);
    await Promise.all([games.next(), watcher.next()]);
    await muster.api.ok('POST', `/group/groups/${game.group_id}/kick/${member.identity_id}`, {
      token: muster.administrator_token,
      body: {},
    });
    const { body } = await muster.api.get(path, member.token);
    expect(await watcher.refusal()).toEqual({ ...body, ray_id: expect.any(String) });
    expect((await games.next(({ games }) => games.length === 0)).groups).toEqual([]);
    expect(games.errors).toEqual([]);
  });

  test('a path that is too long for a frame: reported; other subscriptions continue', async () => {
    const watcher = watchWith(client, path);
    const too_much = watchWith(client, `/cloud/games?filling=${'\u0001'.repeat(4_000)}`);
    expect(await too_much.refusal()).toMatchObject({ code: 'WATCH_BAD_FRAME', message: expect.any(String) });
    await watcher.next();
    await watcher.next(shows(await change()));
    expect(too_much.errors).toHaveLength(1);
    const ended = watchWith(client, `/cloud/games?filling=${'\u0001'.repeat(4_000)}`);
    ended.stop();
    await watcher.next(shows(await change()));
    expect(ended.errors).toEqual([]);
  });

  test('an invalid address, an invalid path, or too many paths: thrown at once', () => {
    const nothing = () => {};
    for (const url of ['muster.example', 'localhost:8080', '']) {
      expect(() => connect({ url })).toThrow('begin it with http:// or https://');
    }
    expect(() => client.watch('cloud/games', nothing)).toThrow(TypeError);
    expect(() => client.watch(`/${'a'.repeat(5_000)}`, nothing)).toThrow(TypeError);
    for (let number = 0; number < 256; number += 1) client.watch(`/nothing/${number}`, nothing, { onError: nothing });
    expect(() => client.watch('/cloud/games', nothing)).toThrow(RangeError);
    client.close();
    expect(() => client.watch(path, nothing)).toThrow('closed');
  });
});

describe('client: watch', () => {
  test('delivers the current body, then one after each change', async () => {
    const watcher = watchWith(client, path);
    expect(await watcher.next()).toEqual(await muster.api.ok('GET', path, { token: muster.administrator_token }));
    for (let changes = 0; changes < 3; changes += 1) await watcher.next(shows(await change()));
    const indexes = watcher.bodies.map(({ watch }) => watch.index);
    expect(new Set(indexes).size).toBe(indexes.length);
  });

  test('from an index, delivers only what comes after it', async () => {
    const { watch } = await muster.api.ok('GET', path, { token: muster.administrator_token });
    const watcher = watchWith(client, path, { watch_index: watch.index });
    // Once another watcher has a body, the first would have one too.
    await watchWith(client, '/cloud/games').next();
    expect(watcher.bodies).toEqual([]);
    const name = await change();
    await watcher.next(shows(name));
    expect(watcher.bodies).toHaveLength(1);
  });

  test.each(['x'.repeat(65), 'x', ''])('from an invalid index (%s), delivers the current body', async (watch_index) => {
    const watcher = watchWith(client, path, { watch_index });
    expect(await watcher.next()).toEqual(await muster.api.ok('GET', path, { token: muster.administrator_token }));
    await watcher.next(shows(await change()));
  });

  test('many paths share one connection', async () => {
    const { hostname, port } = new URL(muster.config.public_url);
    await using proxy = await openTcpProxy({ host: hostname, port: Number(port) });
    client = open({ url: `http://127.0.0.1:${proxy.port}/` });
    const watchers = [path, ...others].map((one) => watchWith(client, one));
    await Promise.all(watchers.map((watcher) => watcher.next()));
    expect(proxy.connections).toBe(1);
  });

  test('without a token, delivers a view that needs none', async () => {
    client = open({ token: undefined });
    const { device_link_token } = await muster.api.ok('POST', '/cloud/devices/links', { body: {} });
    const watcher = watchWith(client, `/cloud/devices/links?device_link_token=${device_link_token}`);
    expect(await watcher.next()).toEqual({ watch: { index: expect.any(String) } });
  });
});

test('client: a path that the service refuses for now is reported until a body comes', async () => {
  const watchers = [path, ...others].map((one) => watchWith(client, one));
  await Promise.all(watchers.map((watcher) => watcher.next()));
  const delays: Refusal[] = [];
  const waiting = watchWith(client, `${environment}/builds`, { onDelayed: (error) => void delays.push(error) });
  const code = 'TOO_MANY_WATCHERS';
  await waitFor(() => delays.length > 1, 'two refusals');
  expect(delays[0]).toMatchObject({ code, message: expect.any(String) });
  expect([waiting.bodies, waiting.errors]).toEqual([[], []]);
  watchers[0]?.stop();
  await waiting.next();
});

describe('client: two watchers of one path', () => {
  test('share one subscription, which ends with the last watcher', async () => {
    // Together they take all slots of a caller, so one more gets in only when a slot is free.
    const one = watchWith(client, path);
    const other = watchWith(client, path);
    const rest = others.map((given_path) => watchWith(client, given_path));
    await Promise.all([one, other, ...rest].map((watcher) => watcher.next()));
    const waiting = watchWith(client, `${environment}/builds`);
    one.stop();
    const name = await change();
    await other.next(shows(name));
    expect(one.bodies.some(shows(name))).toBe(false);
    expect(waiting.bodies).toEqual([]);
    other.stop();
    expect((await waiting.next()).builds).toEqual([]);
  });

  test('get the same bodies; a later watcher first gets the current body', async () => {
    const one = watchWith(client, path);
    await one.next();
    const other = watchWith(client, path);
    expect(await other.next()).toEqual(one.bodies.at(-1));
    for (let changes = 0; changes < 3; changes += 1) {
      const name = await change();
      expect(await other.next(shows(name))).toEqual(await one.next(shows(name)));
    }
    // The later watcher caught up by polls. Now both share a subscription, so three slots are free.
    await Promise.all(others.map((given_path) => watchWith(client, given_path).next()));
    one.stop();
    await other.next(shows(await change()));
    for (const { bodies } of [one, other]) {
      expect(new Set(bodies.map(({ watch }) => watch.index)).size).toBe(bodies.length);
    }
  });

  test('may end each other in a callback', async () => {
    let end = () => {};
    client.watch(path, () => end());
    const other = watchWith(client, path);
    end = other.stop;
    const last = watchWith(client, path);
    await last.next();
    expect(other.bodies).toEqual([]);
  });

  test('may spell the path differently', async () => {
    const watchers = [path, path.toUpperCase().replace('/CLOUD/GAMES', '/cloud/games')].map((one) =>
      watchWith(client, one),
    );
    await Promise.all(watchers.map((watcher) => watcher.next()));
    const name = await change();
    await Promise.all(watchers.map((watcher) => watcher.next(shows(name))));
  });
});

test('client: no callback is called after close', async () => {
  const watcher = watchWith(client, path);
  await watcher.next();
  client.close();
  const other = open();
  const name = await change();
  await watchWith(other, path).next(shows(name));
  other.close();
  expect(watcher.bodies).toHaveLength(1);
  expect(watcher.errors).toEqual([]);
});
