import { expect, test } from 'bun:test';
import { sql } from 'drizzle-orm';
import { selectGroupOfOldRequest } from '../../../src/features/groups/members-store.ts';
import { deleteEndedInvites } from '../../../src/features/groups/store.ts';
import { openDatabase } from '../../../src/platform/database/database.ts';
import { openTestDatabase } from '../../support/database/database.ts';
import { countScans } from '../../support/database/table-scans.ts';
import { makeGame } from '../../support/game.ts';
import { makeGuest } from '../../support/people.ts';
import { openTestService } from '../../support/service.ts';
import { outcomeOf, shareService } from '../../support/suite.ts';
import { waitFor } from '../../support/wait.ts';

const DAY_MS = 24 * 3_600_000;
const MEMBERS_MAX = 256;
const REQUESTS_MAX = 1_000;

const muster = shareService();

test('groups: a closed group that is opened admits waiting join requests until it is full', async () => {
  const game = await makeGame(muster.api, muster.administrator_token);
  const group = `/group/groups/${game.group_id}`;
  const owner = { token: muster.administrator_token };
  const [one, two] = [await makeGuest(muster.api, game), await makeGuest(muster.api, game)];
  for (const { token } of [one, two]) await muster.api.ok('POST', `${group}/join-request`, { token, body: {} });
  await muster.api.ok('POST', `${group}/profile`, { ...owner, body: { publicity: 'closed' } });
  await using database = openDatabase(muster.database_address, 1);
  // One place is free.
  await database.queries.execute(sql`
    with people as (
      insert into identities (identity_id, display_name, account_number, is_registered, is_admin, create_ts)
      select gen_random_uuid(), 'Guest', 0, false, false, now() from generate_series(1, ${MEMBERS_MAX - 2}::int)
      returning identity_id
    )
    insert into group_members (group_id, identity_id, join_ts)
    select ${game.group_id}::uuid, identity_id, now() from people`);
  const opened = await muster.api.post(`${group}/profile`, muster.administrator_token, { publicity: 'open' });
  expect(outcomeOf(opened)).toBe('200');
  const { group: seen } = await muster.api.ok('GET', `${group}/summary`, owner);
  expect(seen).toMatchObject({ publicity: 'open', member_count: MEMBERS_MAX });
  const { join_requests } = await muster.api.ok('GET', `${group}/join-requests`, owner);
  expect(join_requests).toHaveLength(1);
});

test('groups: a closed group whose opening failed admits the join requests that are left, when it is repeated', async () => {
  const game = await makeGame(muster.api, muster.administrator_token);
  const group = `/group/groups/${game.group_id}`;
  const owner = { token: muster.administrator_token };
  const people = [await makeGuest(muster.api, game), await makeGuest(muster.api, game)];
  for (const { token } of people) await muster.api.ok('POST', `${group}/join-request`, { token, body: {} });
  await muster.api.ok('POST', `${group}/profile`, { ...owner, body: { publicity: 'closed' } });
  const { queries } = muster.database;
  await queries.execute(sql`create function refuse_member() returns trigger language plpgsql as $$
    begin raise exception 'the member is refused'; end $$`);
  await queries.execute(sql`create trigger refuse_member before insert on group_members
    for each row execute function refuse_member()`);
  const open = () => muster.api.post(`${group}/profile`, muster.administrator_token, { publicity: 'open' });
  expect((await open()).status).toBe(500);
  await queries.execute(sql`drop function refuse_member cascade`);
  expect((await open()).status).toBe(200);
  const { group: seen } = await muster.api.ok('GET', `${group}/summary`, owner);
  expect(seen).toMatchObject({ publicity: 'open', member_count: 3 });
});

test('groups: a join request of a deleted person does not keep a closed group from being opened', async () => {
  const game = await makeGame(muster.api, muster.administrator_token);
  const group = `/group/groups/${game.group_id}`;
  const owner = { token: muster.administrator_token };
  const [deleted, waiting] = [await makeGuest(muster.api, game), await makeGuest(muster.api, game)];
  for (const { token } of [deleted, waiting]) {
    await muster.api.ok('POST', `${group}/join-request`, { token, body: {} });
  }
  await muster.api.ok('POST', `${group}/profile`, { ...owner, body: { publicity: 'closed' } });
  await muster.database.queries.execute(
    sql`update identities set is_deleted = true where identity_id = ${deleted.identity_id}`,
  );
  await muster.api.ok('POST', `${group}/profile`, { ...owner, body: { publicity: 'open' } });
  const { group: seen } = await muster.api.ok('GET', `${group}/summary`, owner);
  expect(seen).toMatchObject({ publicity: 'open', member_count: 2 });
});

test('groups: the owner who watches them sees the join request of a deleted person go', async () => {
  const game = await makeGame(muster.api, muster.administrator_token);
  const requests = `/group/groups/${game.group_id}/join-requests`;
  const owner = { token: muster.administrator_token };
  const { identity_id, token } = await makeGuest(muster.api, game);
  await muster.api.ok('POST', '/identity/identities/self/delete-request', { token, body: {} });
  muster.clock.advance(29 * DAY_MS);
  await muster.api.ok('POST', `/group/groups/${game.group_id}/join-request`, { token, body: {} });
  const before = await muster.api.ok('GET', requests, owner);
  expect(before.join_requests).toHaveLength(1);
  const countChanges = async () => {
    const topic = `group:${game.group_id}`;
    const [row] = await muster.database.queries.execute(sql`select version::int from topics where topic = ${topic}`);
    return row?.version;
  };
  const changes = Number(await countChanges());
  muster.clock.advance(2 * DAY_MS);
  // Another process on the database deletes the person at its start.
  await using other_machine = await openTestService({}, { database_of: muster });
  const isForgotten = () =>
    other_machine.events.some((event) => event.event === 'identity_forgotten' && event.identity_id === identity_id);
  await waitFor(isForgotten, 'the person to be deleted');
  expect((await muster.api.ok('GET', `${requests}?watch_index=${before.watch.index}`, owner)).join_requests).toEqual(
    [],
  );
  expect(await countChanges()).toBe(changes + 1);
});

test('groups: a deleted person leaves all of them, in any number', async () => {
  const game = await makeGame(muster.api, muster.administrator_token);
  const { identity_id, token } = await makeGuest(muster.api, game);
  const { queries } = muster.database;
  await queries.execute(sql`
    with founded as (
      insert into groups (group_id, display_name, owner_identity_id, create_ts)
      select gen_random_uuid(), 'Group', owner_identity_id, now() from groups, generate_series(1, 600)
      where group_id = ${game.group_id} returning group_id
    )
    insert into group_members (group_id, identity_id, join_ts) select group_id, ${identity_id}::uuid, now() from founded`);
  await queries.execute(sql`
    insert into group_join_requests (group_id, identity_id, ts) values (${game.group_id}, ${identity_id}, now() + '20 days')`);
  await muster.api.ok('POST', '/identity/identities/self/delete-request', { token, body: {} });
  muster.clock.advance(31 * DAY_MS);
  // Two other processes on the database delete the person at their starts.
  const machines = await Promise.all([1, 2].map(() => openTestService({}, { database_of: muster })));
  await using opened = new AsyncDisposableStack();
  for (const machine of machines) opened.use(machine);
  const isForgotten = async () => {
    const deleted = await queries.execute(
      sql`select from identities where identity_id = ${identity_id} and display_name = 'Guest'`,
    );
    return deleted.length === 0;
  };
  await waitFor(isForgotten, 'the person to be deleted');
  for (const table of ['group_members', 'group_join_requests']) {
    const listed = await queries.execute(sql`select from ${sql.identifier(table)} where identity_id = ${identity_id}`);
    expect([table, listed.length]).toEqual([table, 0]);
  }
  const forgotten = () =>
    machines.flatMap(({ events }) =>
      events.filter((event) => event.event === 'identity_forgotten' && event.identity_id === identity_id),
    );
  await waitFor(() => forgotten().length > 0, 'the deletion to be reported');
  expect(forgotten()).toHaveLength(1);
  expect(machines.flatMap(({ events }) => events.filter(({ event }) => event === 'loop_failed'))).toEqual([]);
});

test('groups: one whose owner is deleted goes to an administrator, also to one that waits to join it or is banned', async () => {
  const game = await makeGame(muster.api, muster.administrator_token);
  const group = `/group/groups/${game.group_id}`;
  const administrator = { token: muster.administrator_token };
  const { identity } = await muster.api.ok('GET', '/identity/identities/self/profile', administrator);
  const owner = await makeGuest(muster.api, game);
  const { code } = await muster.api.ok('POST', `${group}/invites`, administrator);
  await muster.api.ok('POST', `/group/invites/${code}/consume`, { token: owner.token });
  const transfer = { new_owner_identity_id: owner.identity_id };
  await muster.api.ok('POST', `${group}/transfer-owner`, { ...administrator, body: transfer });
  await muster.api.ok('POST', `${group}/leave`, { ...administrator, body: {} });
  await muster.api.ok('POST', '/identity/identities/self/delete-request', { token: owner.token, body: {} });
  muster.clock.advance(20 * DAY_MS);
  await muster.api.ok('POST', `${group}/join-request`, { ...administrator, body: {} });
  await muster.api.ok('POST', `${group}/profile`, { token: owner.token, body: { publicity: 'closed' } });
  const { queries } = muster.database;
  await queries.execute(sql`
    insert into group_bans (group_id, identity_id, ts) values (${game.group_id}, ${identity.identity_id}, now())`);
  muster.clock.advance(11 * DAY_MS);
  // Another process on the database deletes the owner at its start.
  await using other_machine = await openTestService({}, { database_of: muster });
  const isForgotten = () =>
    other_machine.events.some(
      (event) => event.event === 'identity_forgotten' && event.identity_id === owner.identity_id,
    );
  await waitFor(isForgotten, 'the owner to be deleted');
  await muster.api.ok('POST', `${group}/profile`, { ...administrator, body: { publicity: 'open' } });
  const { group: seen } = await muster.api.ok('GET', `${group}/profile`, administrator);
  expect(seen).toMatchObject({
    owner_identity_id: identity.identity_id,
    member_count: 1,
    is_current_identity_requesting_join: false,
    join_requests: [],
  });
  const { banned_identities } = await muster.api.ok('GET', `${group}/bans`, administrator);
  expect(banned_identities).toEqual([]);
});

test('join requests: a group keeps the newest, each for 30 days', async () => {
  const game = await makeGame(muster.api, muster.administrator_token);
  const group = `/group/groups/${game.group_id}`;
  const owner = { token: muster.administrator_token };
  const [one, other] = [await makeGuest(muster.api, game), await makeGuest(muster.api, game)];
  await muster.api.ok('POST', `${group}/join-request`, { token: one.token, body: {} });
  await using database = openDatabase(muster.database_address, 1);
  // A minute later, as many others ask as may wait.
  await database.queries.execute(sql`
    with people as (
      insert into identities (identity_id, display_name, account_number, is_registered, is_admin, create_ts)
      select gen_random_uuid(), 'Guest', 0, false, false, now() from generate_series(1, ${REQUESTS_MAX}::int)
      returning identity_id
    )
    insert into group_join_requests (group_id, identity_id, ts)
    select ${game.group_id}::uuid, identity_id, ${new Date(muster.clock.now().getTime() + 60_000).toISOString()}::timestamptz
    from people`);
  const waiting = async () =>
    (
      await database.queries.execute<{ identity_id: string }>(
        sql`select identity_id from group_join_requests where group_id = ${game.group_id}`,
      )
    ).map(({ identity_id }) => identity_id);
  muster.clock.advance(120_000);
  const index = await muster.api.ok('GET', `${group}/profile`, { token: one.token });
  expect(index.group.is_current_identity_requesting_join).toBe(true);
  await muster.api.ok('POST', `${group}/join-request`, { token: other.token, body: {} });
  const kept = await waiting();
  expect([kept.length, kept.includes(one.identity_id), kept.includes(other.identity_id)]).toEqual([
    REQUESTS_MAX,
    false,
    true,
  ]);
  const { join_requests } = await muster.api.ok('GET', `${group}/join-requests?count=1`, owner);
  expect(join_requests).toHaveLength(1);

  muster.clock.advance(29 * DAY_MS);
  const { token } = await makeGuest(muster.api, game);
  await muster.api.ok('POST', `${group}/join-request`, { token, body: {} });
  muster.clock.advance(2 * DAY_MS);
  // Another process on the database removes them at its start.
  await using other_machine = await openTestService({}, { database_of: muster });
  expect(other_machine.administrator_token).toBeString();
  await waitFor(async () => (await waiting()).length === 1, 'the old requests to be removed');
});

test('join requests: an index finds the old ones', async () => {
  await using test_database = await openTestDatabase();
  await using database = openDatabase(test_database.address, 1);
  const { queries } = database;
  await queries.execute(sql`
    with people as (
      insert into identities (identity_id, display_name, account_number, is_registered, is_admin, create_ts)
      select gen_random_uuid(), 'Guest', 0, false, false, now() from generate_series(1, 20000) returning identity_id
    ), founded as (
      insert into groups (group_id, display_name, owner_identity_id, create_ts)
      select gen_random_uuid(), 'Group', identity_id, now() from people limit 1 returning group_id
    )
    insert into group_join_requests (group_id, identity_id, ts) select group_id, identity_id, now() from people, founded`);
  await queries.execute(sql`analyze group_join_requests`);
  const before = await countScans(queries, 'group_join_requests');
  expect(await selectGroupOfOldRequest(queries, new Date(Date.now() - DAY_MS))).toBeUndefined();
  expect(await countScans(queries, 'group_join_requests')).toBe(before);
});

test('invites: they are removed 30 days after their end; active ones stay', async () => {
  const game = await makeGame(muster.api, muster.administrator_token);
  const invite = async (body: object): Promise<string> =>
    (await muster.api.ok('POST', `/group/groups/${game.group_id}/invites`, { token: muster.administrator_token, body }))
      .code;
  const { token } = await makeGuest(muster.api, game);
  const [short, used, lasting] = [await invite({ ttl: 1_000 }), await invite({ use_count: 1 }), await invite({})];
  await muster.api.ok('POST', `/group/invites/${used}/consume`, { token });
  await using database = openDatabase(muster.database_address, 1);
  const isThere = async (code: string) =>
    (await database.queries.execute(sql`select code from group_invites where code = ${code}`)).length > 0;
  // Another process on the database removes them at its start.
  const refreshed = await muster.api.call('POST', '/auth/tokens/identity', {
    body: {},
    headers: { origin: muster.config.public_url },
  });
  const countTokens = async () =>
    (await database.queries.execute(sql`select from refresh_tokens where identity_id = ${refreshed.body.identity_id}`))
      .length;
  expect(await countTokens()).toBe(1);
  muster.clock.advance(91 * DAY_MS);
  await using other_machine = await openTestService({}, { database_of: muster });
  expect(other_machine.administrator_token).toBeString();
  await waitFor(async () => !(await isThere(short)) && !(await isThere(used)), 'ended invites to be removed');
  expect(await isThere(lasting)).toBe(true);
  await waitFor(async () => (await countTokens()) === 0, 'expired refresh tokens to be removed');
});

test('invites: one that is used up late keeps its precise error for 30 days', async () => {
  const game = await makeGame(muster.api, muster.administrator_token);
  const { code } = await muster.api.ok('POST', `/group/groups/${game.group_id}/invites`, {
    token: muster.administrator_token,
    body: { use_count: 1 },
  });
  muster.clock.advance(40 * DAY_MS);
  const { token } = await makeGuest(muster.api, game);
  await muster.api.ok('POST', `/group/invites/${code}/consume`, { token });
  const remove = (kept_days: number) =>
    deleteEndedInvites(muster.database.queries, new Date(muster.clock.now().getTime() - kept_days * DAY_MS));
  await remove(30);
  const late = await muster.api.post(`/group/invites/${code}/consume`, token);
  expect(outcomeOf(late)).toBe('400 GROUP_INVITE_CODE_ALREADY_USED');
  muster.clock.advance(31 * DAY_MS);
  expect(await remove(30)).toBeGreaterThan(0);
  const left = await muster.database.queries.execute(sql`select from group_invites where code = ${code}`);
  expect(left).toHaveLength(0);
});

test('invites: an index finds the ended ones', async () => {
  await using test_database = await openTestDatabase();
  await using database = openDatabase(test_database.address, 1);
  const { queries } = database;
  await queries.execute(sql`
    with person as (
      insert into identities (identity_id, display_name, account_number, is_registered, is_admin, create_ts)
      values (gen_random_uuid(), 'Guest', 0, false, false, now()) returning identity_id
    ), founded as (
      insert into groups (group_id, display_name, owner_identity_id, create_ts)
      select gen_random_uuid(), 'Group', identity_id, now() from person returning group_id
    )
    insert into group_invites (code, group_id, create_ts, expire_ts, uses_left)
    select code::text, group_id, now(), now() + interval '1 hour', 1 from founded, generate_series(1, 20000) as code`);
  await queries.execute(sql`analyze group_invites`);
  const before = await countScans(queries, 'group_invites');
  expect(await deleteEndedInvites(queries, new Date())).toBe(0);
  expect(await countScans(queries, 'group_invites')).toBe(before);
});
