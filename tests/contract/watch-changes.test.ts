import { afterAll, beforeAll, expect, test } from 'bun:test';
import { makeGuest, type Person } from '../support/people.ts';
import { openTestService, type TestService } from '../support/service.ts';
import { makeTenant, type Tenant } from '../support/tenant.ts';
import { type WatchRow, watchRowsOf } from './watch-rows.ts';

let opened: TestService;
let tenant: Tenant;
beforeAll(async () => {
  opened = await openTestService();
  tenant = await makeTenant(opened);
}, 300_000);
afterAll(() => opened[Symbol.asyncDispose]());

/** Returns every view, and those that differ by token once for each. */
async function openRows(): Promise<WatchRow[]> {
  const rows: WatchRow[] = [];
  for (const make of Object.values(watchRowsOf(opened, tenant))) rows.push(await make());
  const { path, change } = rows.find((row) => row.path === '/cloud/games') ?? {};
  if (path === undefined || change === undefined) throw new Error('there is a row for the list of games');
  return [...rows, { path, change, token: tenant.tokens.cloud }, { path, change, token: opened.administrator_token }];
}

/** Makes people whom the group's views show: a member, one who asks to join, one who is banned. */
async function openPeople(): Promise<Person[]> {
  const { api, administrator_token: token } = opened;
  const group = `/group/groups/${tenant.game.group_id}`;
  const [asking, banned] = [await makeGuest(api, tenant.game), await makeGuest(api, tenant.game)];
  await api.ok('POST', `${group}/join-request`, { token: asking.token, body: {} });
  await api.ok('POST', `${group}/bans/${banned.identity_id}`, { token, body: {} });
  return [tenant.member, asking, banned];
}

test('watch: one index has one body, whatever changes', async () => {
  const rows = await openRows();
  const people = await openPeople();
  const rename = ({ token }: Person) =>
    opened.api.ok('POST', '/identity/identities/self/profile', {
      token,
      body: { display_name: `Name ${crypto.randomUUID().slice(0, 8)}` },
    });
  const changes: [string, () => Promise<unknown>][] = [
    ...people.map((person, index): [string, () => Promise<unknown>] => [`name ${index}`, () => rename(person)]),
    ...rows.map(({ path, change }): [string, () => Promise<unknown>] => [path, change]),
  ];
  const known = new Map<string, string>();
  const faults: string[] = [];
  /** Reads every view, and compares bodies with the same index. */
  async function readAll(after: string): Promise<void> {
    await Promise.all(
      rows.map(async ({ path, token }, position) => {
        const body = await opened.api.ok('GET', path, { token });
        const text = JSON.stringify(body);
        const name = `${position} ${body.watch.index}`;
        const before = known.get(name) ?? text;
        known.set(name, before);
        if (before === text) return;
        // A body may be newer than its index; then the next index differs.
        const { watch } = await opened.api.ok('GET', path, { token });
        if (watch.index === body.watch.index) faults.push(`${path} after ${after}: ${before} and ${text}`);
      }),
    );
  }
  await readAll('nothing');
  for (const [what, change] of changes) {
    await change();
    await readAll(what);
  }
  expect(faults).toEqual([]);
  expect(known.size).toBeGreaterThan(2 * rows.length);
}, 300_000);
