import { afterAll, beforeAll, expect, test } from 'bun:test';
import { openTestService, type TestService } from '../../support/service.ts';
import { waitFor } from '../../support/wait.ts';

let opened: AsyncDisposableStack;
let one: TestService;
/** Another process on the database, with the usual limits. */
let other: TestService;
beforeAll(async () => {
  opened = new AsyncDisposableStack();
  one = opened.use(await openTestService());
  other = opened.use(await openTestService({ MUSTER_LIMITS_SCALE: '1' }, { database_of: one }));
}, 300_000);
afterAll(() => opened.disposeAsync());

/** More lookups than an address has in two windows. */
const TRIES_MAX = 1_300;
const NO_SITE = 'There is no site under this name.\n';
const NO_FILE = 'There is no such file on this site.\n';

const visit = ({ config }: TestService, label: string) =>
  fetch(config.local_url, { headers: { host: `${label}.sites.localhost` } });
const textOf = async (service: TestService, label: string) => (await visit(service, label)).text();

test('a site is found by its name once it exists, also by a process that has looked for it before', async () => {
  const token = one.administrator_token;
  const { group_id } = await one.api.ok('POST', '/group/groups', { token, body: { display_name: 'Test team' } });
  for (const service of [one, other]) expect(await textOf(service, 'new-game')).toBe(NO_SITE);
  const game = { display_name: 'New game', developer_group_id: group_id };
  const { game_id } = await one.api.ok('POST', '/cloud/games', { token, body: game });
  expect(await textOf(one, 'new-game')).toBe(NO_FILE);
  await waitFor(async () => (await textOf(other, 'new-game')) === NO_FILE, 'the game in the other process');

  for (const service of [one, other]) expect(await textOf(service, 'new-game--beta')).toBe(NO_SITE);
  const { game: seen } = await one.api.ok('GET', `/cloud/games/${game_id}`, { token });
  const namespace = { display_name: 'Beta', name_id: 'beta', version_id: seen.versions[0].version_id };
  await one.api.ok('POST', `/cloud/games/${game_id}/namespaces`, { token, body: namespace });
  expect(await textOf(one, 'new-game--beta')).toBe(NO_FILE);
  await waitFor(async () => (await textOf(other, 'new-game--beta')) === NO_FILE, 'the namespace in the other process');
});

test('an address that looks for many unknown hosts is refused; hosts that were looked up lately still answer', async () => {
  await waitFor(async () => (await textOf(other, 'known')) === NO_SITE, 'the first lookup');
  const isRefused = async (number: number) => {
    const answer = await visit(other, `unknown-${number}`);
    return answer.status === 429 && (await answer.json()).code === 'API_RATE_LIMIT';
  };
  let tries = 0;
  while (tries < TRIES_MAX && !(await isRefused(tries))) tries += 1;
  expect(tries).toBeLessThan(TRIES_MAX);
  expect(await textOf(other, 'known')).toBe(NO_SITE);
});

test('so is an address whose requests come from pages of many unknown origins', async () => {
  const isRefused = async (number: number) => {
    const headers = { origin: `https://page-${number}.example` };
    const find = await other.api.call('POST', '/matchmaker/lobbies/find', { headers, body: { game_modes: ['any'] } });
    expect(find.body.code).toBeOneOf(['API_UNAUTHORIZED', 'API_RATE_LIMIT']);
    return find.body.metadata?.limit === 600;
  };
  let tries = 0;
  while (tries < TRIES_MAX && !(await isRefused(tries))) tries += 1;
  expect(tries).toBeLessThan(TRIES_MAX);
});
