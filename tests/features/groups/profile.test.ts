import { beforeAll, beforeEach, describe, expect, test } from 'bun:test';
import { sql } from 'drizzle-orm';
import { openDatabase } from '../../../src/platform/database/database.ts';
import { contractProblems } from '../../support/contract.ts';
import { makeGame, type TestGame } from '../../support/game.ts';
import { makeGuest, type Person } from '../../support/people.ts';
import { outcomeOf, shareService } from '../../support/suite.ts';

const MEMBERS_MAX = 256;

const muster = shareService();
let game: TestGame;
let group: string;
let outsider: Person;
let member: Person;
beforeAll(async () => {
  const other = await makeGame(muster.api, muster.administrator_token);
  outsider = await makeGuest(muster.api, other);
});
beforeEach(async () => {
  game = await makeGame(muster.api, muster.administrator_token);
  group = `/group/groups/${game.group_id}`;
  member = await makeGuest(muster.api, game);
  await join(member);
});

const owner = () => muster.administrator_token;
const read = (path: string, token = owner()) => muster.api.ok('GET', path, { token });
const write = (path: string, body: object = {}, token = owner()) => muster.api.ok('POST', path, { token, body });
const profileFor = async (token: string) => (await read(`${group}/profile`, token)).group;
const paths = (errors: { path: string[] }[]) => errors.map(({ path }) => path.join('.'));

async function join({ token }: Person): Promise<void> {
  const { code } = await write(`${group}/invites`);
  await write(`/group/invites/${code}/consume`, {}, token);
}

describe('creating a group is refused', () => {
  test('to everyone but administrators', async () => {
    const create = (token: string) => muster.api.post('/group/groups', token, { display_name: 'Team' });
    expect(outcomeOf(await create(outsider.token))).toBe('403 IDENTITY_NOT_ADMIN');
    for (const token of [game.cloud_token, game.public_token, game.service_token]) {
      expect(outcomeOf(await create(token))).toBe('401 CLAIMS_MISSING_ENTITLEMENT');
    }
  });

  const NAMES: [string, string, string][] = [
    ['', 'too-short', 'display-name.too-short'],
    ['x'.repeat(25), 'too-long', 'display-name.too-long'],
    [' x', 'display-name-invalid', 'display-name.invalid'],
  ];
  for (const [display_name, asked, refused] of NAMES) {
    test(`for its name: ${refused}`, async () => {
      const { errors } = await write('/cloud/groups/validate', { display_name });
      expect(paths(errors)).toEqual([asked]);
      const answer = await muster.api.post('/group/groups', owner(), { display_name });
      expect(outcomeOf(answer)).toBe('400 VALIDATION_ERROR');
      expect(paths(answer.body.metadata.errors)).toEqual([refused]);
    });
  }
});

describe('a group', () => {
  test('is open, and its creator is its owner and first member', async () => {
    const { group_id } = await write('/group/groups', { display_name: 'x'.repeat(24) });
    const seen = await read(`/group/groups/${group_id}/summary`);
    expect(contractProblems('GroupGetSummaryResponse', seen)).toEqual([]);
    const { identity } = await read('/identity/identities/self/profile');
    expect(seen.group).toEqual({
      group_id,
      display_name: 'x'.repeat(24),
      bio: '',
      external: { profile: `${muster.config.public_url}/hub/~groups/${group_id}` },
      is_developer: true,
      is_current_identity_member: true,
      member_count: 1,
      owner_identity_id: identity.identity_id,
      publicity: 'open',
    });
  });

  test('has every member that clients need, for every caller', async () => {
    const asker = await makeGuest(muster.api, game);
    await write(`${group}/join-request`, {}, asker.token);
    for (const { token } of [{ token: owner() }, member, asker, outsider]) {
      expect(contractProblems('GroupGetProfileResponse', await read(`${group}/profile`, token))).toEqual([]);
      expect(contractProblems('GroupGetSummaryResponse', await read(`${group}/summary`, token))).toEqual([]);
      expect(contractProblems('GroupGetMembersResponse', await read(`${group}/members`, token))).toEqual([]);
      expect(contractProblems('GroupListSuggestedResponse', await read('/group/groups', token))).toEqual([]);
    }
    await write(`${group}/bans/${member.identity_id}`);
    expect(contractProblems('GroupGetJoinRequestsResponse', await read(`${group}/join-requests`))).toEqual([]);
    expect(contractProblems('GroupGetBansResponse', await read(`${group}/bans`))).toEqual([]);
    const { code } = await write(`${group}/invites`);
    expect(contractProblems('GroupGetInviteResponse', await read(`/group/invites/${code}`))).toEqual([]);
  });

  test('shows join requests to its owner, and each to the person who made it', async () => {
    const asker = await makeGuest(muster.api, game);
    await write(`${group}/join-request`, {}, asker.token);
    expect((await profileFor(owner())).join_requests).toMatchObject([{ identity: { identity_id: asker.identity_id } }]);
    for (const { token } of [member, asker, outsider]) expect((await profileFor(token)).join_requests).toEqual([]);
    expect((await profileFor(asker.token)).is_current_identity_requesting_join).toBe(true);
    expect((await profileFor(outsider.token)).is_current_identity_requesting_join).toBe(false);
  });

  test('that is closed shows its members to members only, and is not suggested to others', async () => {
    const suggested = async () => {
      const { groups } = await read('/group/groups', outsider.token);
      return groups.map(({ group_id }: { group_id: string }) => group_id);
    };
    expect((await suggested())[0]).toBe(game.group_id);
    expect((await profileFor(outsider.token)).members).toHaveLength(2);
    await write(`${group}/profile`, { publicity: 'closed' });
    expect((await profileFor(outsider.token)).members).toEqual([]);
    expect((await profileFor(member.token)).members).toHaveLength(2);
    expect(await suggested()).not.toContain(game.group_id);
  });

  test('changes only what the request names', async () => {
    const before = await profileFor(owner());
    await write(`${group}/profile`, { bio: 'Two\nlines' });
    expect(await profileFor(owner())).toEqual({ ...before, bio: 'Two\nlines' });
    await write(`${group}/profile`, { display_name: 'Another' });
    expect(await profileFor(owner())).toEqual({ ...before, bio: 'Two\nlines', display_name: 'Another' });
    await write(`${group}/profile`, {});
    expect(await profileFor(owner())).toEqual({ ...before, bio: 'Two\nlines', display_name: 'Another' });
  });

  const CHANGES: [object, string[]][] = [
    [{ display_name: 'x'.repeat(25) }, ['display-name.too-long']],
    [{ bio: 'x'.repeat(201) }, ['bio.invalid']],
    [{ display_name: '', bio: 'a\tb' }, ['display-name.too-short', 'bio.invalid']],
  ];
  for (const [change, problems] of CHANGES) {
    test(`does not change to ${JSON.stringify(change).slice(0, 40)}: ${problems}`, async () => {
      const before = await profileFor(owner());
      expect(paths((await write('/group/groups/profile/validate', change)).errors)).toEqual(problems);
      expect(outcomeOf(await muster.api.post(`${group}/profile`, owner(), change))).toBe('400 VALIDATION_ERROR');
      expect(await profileFor(owner())).toEqual(before);
    });
  }

  test('has no other publicity than open and closed', async () => {
    expect(outcomeOf(await muster.api.post(`${group}/profile`, owner(), { publicity: 'secret' }))).toBe(
      '400 API_BAD_BODY',
    );
  });
});

describe('a missing person', () => {
  const UNKNOWN_ID = crypto.randomUUID();
  const CASES: [string, string, object, string][] = [
    ['cannot be banned', `/bans/${UNKNOWN_ID}`, {}, '404 IDENTITY_NOT_FOUND'],
    ['cannot be kicked', `/kick/${UNKNOWN_ID}`, {}, '403 GROUP_NOT_MEMBER'],
    ['cannot be admitted', `/join-request/${UNKNOWN_ID}`, { resolution: true }, '200'],
    ['cannot own a group', '/transfer-owner', { new_owner_identity_id: UNKNOWN_ID }, '403 GROUP_NOT_MEMBER'],
    [
      'cannot own a group, with an id that is no UUID',
      '/transfer-owner',
      { new_owner_identity_id: 'me' },
      '400 API_BAD_BODY',
    ],
  ];
  for (const [what, path, body, outcome] of CASES) {
    test(what, async () => {
      const before = await profileFor(owner());
      expect(outcomeOf(await muster.api.post(`${group}${path}`, owner(), body))).toBe(outcome);
      expect(await profileFor(owner())).toEqual(before);
    });
  }
});

test(`groups: one has at most ${MEMBERS_MAX} members, also concurrently`, async () => {
  await using database = openDatabase(muster.database_address, 1);
  await database.queries.execute(sql`
    with people as (
      insert into identities (identity_id, display_name, account_number, bio, is_registered, is_admin, create_ts)
      select gen_random_uuid(), 'Member', 1, '', false, false, now() from generate_series(1, ${MEMBERS_MAX - 4}::int)
      returning identity_id
    )
    insert into group_members (group_id, identity_id, join_ts) select ${game.group_id}, identity_id, now() from people`);
  const { code } = await write(`${group}/invites`);
  const people = await Promise.all(Array.from({ length: 5 }, () => makeGuest(muster.api, game)));
  const consume = ({ token }: Person) => muster.api.post(`/group/invites/${code}/consume`, token);
  const outcomes = (await Promise.all(people.map(consume))).map(outcomeOf);
  expect(outcomes.sort()).toEqual(['200', '200', ...Array(3).fill('400 GROUP_FULL')]);
  expect((await profileFor(owner())).member_count).toBe(MEMBERS_MAX);
});
