import { expect, test } from 'bun:test';
import { sql } from 'drizzle-orm';
import { lockGuestsToRemove } from '../../../src/features/identities/store.ts';
import { openDatabase } from '../../../src/platform/database/database.ts';
import { openTestDatabase } from '../../support/database/database.ts';
import { countScans } from '../../support/database/table-scans.ts';
import { makeGame } from '../../support/game.ts';
import { makeGuest, makeMember, type Person } from '../../support/people.ts';
import { openTestService } from '../../support/service.ts';
import { shareService } from '../../support/suite.ts';
import { waitFor } from '../../support/wait.ts';

const DAY_MS = 24 * 3_600_000;

const muster = shareService();

test('guests: one is removed 30 days after the last token expired, unless something refers to it', async () => {
  const game = await makeGame(muster.api, muster.administrator_token);
  const [ended, renewed, banned, asking] = [await guest(), await guest(), await guest(), await guest()];
  const member = await makeMember(muster, game);
  const owner = { token: muster.administrator_token };
  await muster.api.ok('POST', `/group/groups/${game.group_id}/bans/${banned.identity_id}`, owner);
  // An unanswered request must not keep its guest, because any guest can send one to any open group.
  await muster.api.ok('POST', `/group/groups/${game.group_id}/join-request`, { token: asking.token, body: {} });
  const browser = await muster.api.ok('POST', '/auth/tokens/identity', {
    body: {},
    headers: { origin: muster.config.public_url },
  });
  await using database = openDatabase(muster.database_address, 1);
  // The row of a picture, as its upload would leave it.
  const upload_id = crypto.randomUUID();
  await database.queries.execute(sql`
    insert into uploads (upload_id, identity_id, kind, is_multipart, content_length, create_ts, complete_ts)
    values (${upload_id}, ${ended.identity_id}, 'identity_avatar', false, 1, now(), now())`);
  await database.queries.execute(sql`
    update identities set avatar_upload_id = ${upload_id} where identity_id = ${ended.identity_id}`);
  const profile = { token: ended.token, body: { display_name: 'Ended' } };
  await muster.api.ok('POST', '/identity/identities/self/profile', profile);

  muster.clock.advance(100 * DAY_MS);
  const { identity } = await muster.api.ok('POST', '/identity/identities', {
    token: game.public_token,
    body: { existing_identity_token: renewed.token },
  });
  expect(identity.identity_id).toBe(renewed.identity_id);
  muster.clock.advance(109 * DAY_MS);
  await removeWhatIsDue(browser.identity_id);
  expect(await isThere(ended)).toBe(true);
  muster.clock.advance(2 * DAY_MS);
  await removeWhatIsDue(ended.identity_id);
  muster.clock.advance(31 * DAY_MS);
  await removeWhatIsDue(asking.identity_id);
  for (const person of [renewed, banned, member]) expect(await isThere(person)).toBe(true);
  const [picture] = await database.queries.execute(sql`
    select from uploads where upload_id = ${upload_id} and discard_ts is null`);
  expect(picture).toBeUndefined();
  const watched = await database.queries.execute(sql`
    select from topics where split_part(topic, ':', 2) in (${ended.identity_id}, ${renewed.identity_id})`);
  expect(watched.length).toBe(0);

  async function guest(): Promise<Person> {
    return await makeGuest(muster.api, game);
  }

  async function isThere({ identity_id }: Pick<Person, 'identity_id'>): Promise<boolean> {
    const rows = await database.queries.execute(sql`select from identities where identity_id = ${identity_id}`);
    return rows.length > 0;
  }

  /** Another process on the database removes guests at its start. */
  async function removeWhatIsDue(identity_id: string): Promise<void> {
    await using other = await openTestService({}, { database_of: muster });
    expect(other.administrator_token).toBeString();
    await waitFor(async () => !(await isThere({ identity_id })), 'the guest to be removed');
  }
});

test('guests: those of earlier versions are kept for at least 180 days', async () => {
  await using database = openDatabase(muster.database_address, 1);
  const [row] = await database.queries.execute<{ is_kept: boolean }>(sql`
    insert into identities (identity_id, display_name, account_number, is_registered, is_admin, create_ts)
    values (gen_random_uuid(), 'Guest', 0, false, false, now() - interval '3 years')
    returning keep_until_ts > now() + interval '180 days' as is_kept`);
  expect(row?.is_kept).toBe(true);
});

test('guests: an index finds the expired ones', async () => {
  await using test_database = await openTestDatabase();
  await using database = openDatabase(test_database.address, 1);
  const { queries } = database;
  await queries.execute(sql`
    insert into identities (identity_id, display_name, account_number, is_registered, is_admin, create_ts)
    select gen_random_uuid(), 'Guest', 0, false, false, now() from generate_series(1, 20000)`);
  await queries.execute(sql`analyze identities`);
  const before = await countScans(queries, 'identities');
  expect(await database.transact((tx) => lockGuestsToRemove(tx, new Date()))).toEqual([]);
  expect(await countScans(queries, 'identities')).toBe(before);
});
