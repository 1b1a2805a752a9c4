import { afterAll, beforeAll, expect, test } from 'bun:test';
import { makeGame } from '../support/game.ts';
import { makeMember } from '../support/people.ts';
import { openTestService, type TestService } from '../support/service.ts';
import { makeTenant } from '../support/tenant.ts';
import { waitFor } from '../support/wait.ts';
import { openSocket } from '../support/watch/socket.ts';
import { WATCHED_PATHS, type WatchRow, type WatchRows, watchRowsOf } from './watch-rows.ts';

let opened: TestService;
let rows: WatchRows;
beforeAll(async () => {
  opened = await openTestService();
  rows = watchRowsOf(opened, await makeTenant(opened));
}, 300_000);
afterAll(() => opened[Symbol.asyncDispose]());

const INDEX = /"watch":\{"index":"([^"]+)"\}\}$/;
const indexOf = (text: string): string => INDEX.exec(text)?.[1] ?? '';
/** Returns a raw body without its index. */
const withoutIndex = (text: string): string => text.replace(INDEX, '}');

async function get({ path, token }: WatchRow, watch_index?: string): Promise<string> {
  const index = watch_index === undefined ? '' : `${path.includes('?') ? '&' : '?'}watch_index=${watch_index}`;
  const headers: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const response = await fetch(`${opened.config.public_url}${path}${index}`, { headers });
  const text = await response.text();
  expect(`${response.status} ${response.ok ? '' : text}`).toBe('200 ');
  return text;
}

/** Polls with the index of the last answer until the test ends; a log only once. */
async function poll(row: WatchRow, watch_index: string, answers: string[]): Promise<void> {
  const text = await get(row, watch_index);
  answers.push(text);
  if (row.is_log !== true) void poll(row, indexOf(text), answers).catch(() => {});
}

/** Subscribes from an index, and collects the raw bodies. */
async function subscribe({ path, token }: WatchRow, watch_index: string) {
  const socket = openSocket(opened.config.public_url, token === undefined ? {} : { token });
  const bodies: string[] = [];
  const key = await socket.subscribe('it', path, watch_index);
  const start = `{"type":"body","key":"${key}","body":`;
  socket.socket.addEventListener('message', ({ data }) => {
    const text = String(data);
    if (text.startsWith(start)) bodies.push(text.slice(start.length, -1));
  });
  return { bodies, [Symbol.dispose]: () => socket[Symbol.dispose]() };
}

test('watch: every view has a row', () => {
  expect(Object.keys(rows).sort()).toEqual([...WATCHED_PATHS].sort());
  expect(WATCHED_PATHS.length).toBeGreaterThan(30);
});

for (const path of WATCHED_PATHS) {
  test(`${path} is byte for byte the same by GET, by long poll and over the WebSocket`, async () => {
    const row = await rows[path]?.();
    if (!row) throw new Error('there is no row');
    const before = await get(row);
    const index = indexOf(before);
    expect(index).not.toBe('');
    using socket = await subscribe(row, index);
    const answers: string[] = [];
    const polling = poll(row, index, answers);
    await row.change();
    await polling;
    await waitFor(async () => {
      const now = withoutIndex(await get(row, row.is_log ? index : undefined));
      return [answers, socket.bodies].every((texts) => withoutIndex(texts.at(-1) ?? '') === now);
    }, 'all three to be equal').catch(async (error: Error) => {
      const now = await get(row, row.is_log ? index : undefined);
      throw new Error(`${error.message}: GET ${now}\npoll ${answers.at(-1)}\nsocket ${socket.bodies.at(-1)}`);
    });
    if (row.is_log) {
      const lines = await get(row, index);
      // The clock goes on, which must not show in the answer.
      await Bun.sleep(2);
      expect(await get(row, index)).toBe(lines);
    }
    // It was a change, and each of the bodies came after it.
    const all = [...answers, ...socket.bodies];
    expect(all.filter((text) => indexOf(text) === index)).toEqual([]);
    expect(withoutIndex(all.at(-1) ?? '')).not.toBe(withoutIndex(before));
  });
}

test('watch: a kicked member gets the error of the GET instead of changes, by poll and over the socket', async () => {
  const { api, administrator_token: owner } = opened;
  // This game has no players, so nothing else of it changes.
  const game = await makeGame(api, owner);
  const member = await makeMember(opened, game);
  const group = `/group/groups/${game.group_id}`;
  // The views of an open group are public.
  await api.ok('POST', `${group}/profile`, { token: owner, body: { publicity: 'closed' } });
  const { game_id, namespace_id } = game;
  const paths = [
    `/cloud/games/${game_id}`,
    `/cloud/games/${game_id}/namespaces/${namespace_id}/logs/lobbies`,
    `/games/${game_id}/environments/${namespace_id}/builds`,
    `${group}/members`,
  ];
  using socket = openSocket(opened.config.public_url, { token: member.token });
  for (const path of paths) await socket.body(await socket.subscribe(path.slice(-64), path));
  const { watch } = await api.ok('GET', paths[0] ?? '', { token: member.token });
  const polling = api.get(`${paths[0]}?watch_index=${watch.index}`, member.token);
  const before = socket.frames.filter(({ type }) => type === 'body').length;
  await api.ok('POST', `${group}/kick/${member.identity_id}`, { token: owner, body: {} });
  const secret = crypto.randomUUID();
  await api.ok('POST', `/cloud/games/${game_id}/versions`, {
    token: owner,
    body: { display_name: secret, config: {} },
  });
  const errors = await waitFor(() => {
    const found = socket.frames.filter(({ type }) => type === 'error');
    return found.length === paths.length && found;
  }, 'all subscriptions to end');
  for (const path of paths) {
    const { body } = await api.get(path, member.token);
    expect(errors.find(({ id }) => id === path.slice(-64))?.error.code).toBe(body.code);
  }
  expect((await polling).body.code).toBe('GAME_NOT_FOUND');
  expect(socket.frames.filter(({ type }) => type === 'body')).toHaveLength(before);
  expect(JSON.stringify(socket.frames)).not.toContain(secret);
}, 300_000);

const REVOCATIONS: [string, (domain: string) => [method: string, path: string, body?: unknown]][] = [
  ['needs a token again', () => ['PUT', 'domain-public-auth', { enabled: false }]],
  ['has lost its domain', (domain) => ['DELETE', `domains/${domain}`]],
];
for (const [what, revoke] of REVOCATIONS) {
  test(`watch: a page without a token whose namespace ${what} gets the error of the GET instead of changes`, async () => {
    const { api } = opened;
    const { game, tokens } = await makeTenant(opened);
    const namespace = `/cloud/games/${game.game_id}/namespaces/${game.namespace_id}`;
    const asDeveloper = (method: string, path: string, body?: unknown) =>
      api.ok(method, `${namespace}/${path}`, { token: game.cloud_token, body });
    const domain = `${crypto.randomUUID()}.example`;
    await asDeveloper('POST', 'domains', { domain });
    await asDeveloper('PUT', 'domain-public-auth', { enabled: true });
    const headers = { origin: `https://${domain}` };
    const list = '/matchmaker/lobbies/list?include_state=true';
    using socket = openSocket(opened.config.public_url, { headers });
    const body = await socket.body(await socket.subscribe('it', list));
    const polling = api.call('GET', `${list}&watch_index=${body.watch.index}`, { headers });
    // A change that keeps the page's right does not end its subscription.
    await asDeveloper('PUT', 'domain-public-auth', { enabled: true });
    const { watch } = await socket.next(({ type }) => type === 'body').then((frame) => frame.body);
    expect((await polling).status).toBe(200);
    const later = api.call('GET', `${list}&watch_index=${watch.index}`, { headers });
    await asDeveloper(...revoke(domain));
    const { error } = await socket.next(({ type }) => type === 'error');
    const refused = await api.call('GET', list, { headers });
    expect([refused.status, error.code]).toEqual([401, refused.body.code]);
    expect((await later).body.code).toBe(refused.body.code);
    const secret = crypto.randomUUID();
    await api.ok('PUT', '/matchmaker/lobbies/state', { token: tokens.lobby, body: { secret } });
    socket.send({ type: 'ping' });
    await socket.next(({ type }) => type === 'pong');
    expect(JSON.stringify(socket.frames)).not.toContain(secret);
    expect(socket.frames.at(-2).type).toBe('error');
  }, 300_000);
}
