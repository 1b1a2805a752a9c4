import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test';
import { sql } from 'drizzle-orm';
import { topics } from '../../../src/features/topics.ts';
import { type Database, openDatabase } from '../../../src/platform/database/database.ts';
import { touch } from '../../../src/platform/watch/versions.ts';
import { makeGame, type TestGame } from '../../support/game.ts';
import { makeGuest, type Person } from '../../support/people.ts';
import { shareService } from '../../support/suite.ts';
import { waitFor } from '../../support/wait.ts';

const muster = shareService();
let database: Database;
let owner_id: string;
let game: TestGame;
let guest: Person;
beforeAll(async () => {
  database = openDatabase(muster.database_address, 2);
  const inspected = await muster.api.ok('GET', '/cloud/auth/inspect', { token: muster.administrator_token });
  owner_id = inspected.agent.identity.identity_id;
});
afterAll(() => database[Symbol.asyncDispose]());
beforeEach(async () => {
  game = await makeGame(muster.api, muster.administrator_token);
  guest = await makeGuest(muster.api, game);
});

const asOwner = (method: string, path: string, body?: object) =>
  muster.api.ok(method, path, { token: muster.administrator_token, body });
const asGuest = (method: string, path: string, body?: object) =>
  muster.api.ok(method, path, { token: guest.token, body });
const group = () => `/group/groups/${game.group_id}`;
const numberOf = ({ watch }: { watch: { index: string } }) => Number(watch.index.split('.')[1]);

/** Blocks every bump of a topic until the returned function is called. */
async function hold(topic: string): Promise<() => Promise<void>> {
  const held = Promise.withResolvers<void>();
  const released = Promise.withResolvers<void>();
  const holding = database.transact(async (tx) => {
    await touch(tx, [topic]);
    held.resolve();
    await released.promise;
  });
  await held.promise;
  return async () => {
    released.resolve();
    await holding;
  };
}

/** Returns whether this many connections wait for a lock. */
async function areWaiting(count: number): Promise<boolean> {
  const [row] = await database.queries.execute<{ waiting: number }>(sql`
    select count(*)::int as waiting from pg_stat_activity
    where datname = current_database() and wait_event_type = 'Lock'`);
  return row?.waiting === count;
}

describe('a list of people has one body for each index', () => {
  test('also if a person asks to join and changes their name concurrently', async () => {
    const readRequests = () => asOwner('GET', `${group()}/join-requests`);
    const release = await hold(topics.identity(guest.identity_id));
    const renaming = asGuest('POST', '/identity/identities/self/profile', { display_name: 'Another' });
    await waitFor(() => areWaiting(1), 'the change of the name to wait');
    const requesting = asGuest('POST', `${group()}/join-request`, {});
    const is_asked = requesting.then(() => true);
    await waitFor(
      async () => (await areWaiting(2)) || (await Promise.race([is_asked, false])),
      'the join request to wait',
    );
    const before = await readRequests();
    await release();
    await Promise.all([renaming, requesting]);
    const after = await readRequests();
    expect(after.join_requests[0].identity.display_name).toBe('Another');
    expect(numberOf(after)).toBeGreaterThan(numberOf(before));
  });
});

test('groups: a join request wakes no watcher of the list of open groups, and waits for no other change of it', async () => {
  const release = await hold(topics.listOfOpenGroups());
  try {
    await asGuest('POST', `${group()}/join-request`, {});
  } finally {
    await release();
  }
  expect((await asOwner('GET', `${group()}/join-requests`)).join_requests).toHaveLength(1);
});

describe('a person who becomes a member at that moment sees', () => {
  const CHANGES: [string, () => Promise<unknown>][] = [
    ['a new name of the group', () => asOwner('POST', `${group()}/profile`, { display_name: 'Another' })],
    [
      'a new game of the group',
      () => asOwner('POST', '/cloud/games', { display_name: 'Another', developer_group_id: game.group_id }),
    ],
  ];
  for (const [what, change] of CHANGES) {
    test(what, async () => {
      const { code } = await asOwner('POST', `${group()}/invites`, {});
      const before = await asGuest('GET', '/cloud/games');
      const release = await hold(topics.gamesOf(owner_id));
      const joining = asGuest('POST', `/group/invites/${code}/consume`);
      await waitFor(() => areWaiting(1), 'the new member to wait');
      const changing = change();
      await waitFor(() => areWaiting(2), 'the change to wait');
      await release();
      await Promise.all([joining, changing]);
      const after = await asGuest('GET', '/cloud/games');
      expect(JSON.stringify(after)).toContain('Another');
      expect(numberOf(after) - numberOf(before)).toBe(2);
    });
  }
});
