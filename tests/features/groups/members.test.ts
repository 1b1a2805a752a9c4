import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test';
import { sql } from 'drizzle-orm';
import { openDatabase } from '../../../src/platform/database/database.ts';
import { makeGame, type TestGame } from '../../support/game.ts';
import { makeGuest, type Person } from '../../support/people.ts';
import { openTestService, type TestService } from '../../support/service.ts';

let opened: TestService;
let game: TestGame;
let group: string;
beforeAll(async () => {
  opened = await openTestService();
});
afterAll(() => opened[Symbol.asyncDispose]());
beforeEach(async () => {
  game = await makeGame(opened.api, opened.administrator_token);
  group = `/group/groups/${game.group_id}`;
});

const owner = () => opened.administrator_token;
const guest = () => makeGuest(opened.api, game);
const call = async (method: string, path: string, token: string, body: unknown = {}) => {
  const answer = await opened.api.call(method, path, { token, ...(method === 'GET' ? {} : { body }) });
  return answer.status === 200 ? answer.body : `${answer.status} ${answer.body.code}`;
};
const members = async (): Promise<string[]> =>
  (await call('GET', `${group}/members`, owner())).members.map(
    ({ identity }: { identity: Person }) => identity.identity_id,
  );
const invite = async (body: object = {}): Promise<string> =>
  (await call('POST', `${group}/invites`, owner(), body)).code;
const consume = (code: string, { token }: Person) => call('POST', `/group/invites/${code}/consume`, token);

describe('only the owner may', () => {
  const CASES = [
    ['POST', '/profile', { display_name: 'Ours now' }],
    ['GET', '/bans', undefined],
    ['GET', '/join-requests', undefined],
    ['POST', '/bans/:id', {}],
    ['DELETE', '/bans/:id', {}],
    ['POST', '/kick/:id', {}],
    ['POST', '/join-request/:id', { resolution: true }],
    ['POST', '/transfer-owner', { new_owner_identity_id: crypto.randomUUID() }],
  ] as const;
  for (const [method, path, body] of CASES) {
    test(`${method} ${path}`, async () => {
      const { token, identity_id } = await guest();
      const answer = await call(method, `${group}${path.replace(':id', identity_id)}`, token, body);
      expect(answer).toBe('403 GROUP_INSUFFICIENT_PERMISSIONS');
      const missing = `/group/groups/${crypto.randomUUID()}${path.replace(':id', identity_id)}`;
      expect(await call(method, missing, token, body)).toBe('404 GROUP_NOT_FOUND');
    });
  }
});

describe('invites', () => {
  test('are created by members, within limits', async () => {
    const { token } = await guest();
    expect(await call('POST', `${group}/invites`, token)).toBe('403 GROUP_NOT_MEMBER');
    for (const body of [
      { ttl: 0 },
      { ttl: 30 * 86_400_000 + 1 },
      { use_count: 0 },
      { use_count: 5_001 },
      { ttl: 1.5 },
    ]) {
      expect(await call('POST', `${group}/invites`, owner(), body)).toBe('400 VALIDATION_ERROR');
    }
    expect(await call('GET', '/group/invites/NOTHING1', token)).toBe('400 GROUP_INVITE_CODE_INVALID');
  });

  test('are refused with the path of what is wrong', async () => {
    const refused = async (body: object) =>
      (await opened.api.call('POST', `${group}/invites`, { token: owner(), body })).body.metadata;
    expect(await refused({ ttl: 0 })).toEqual({ errors: [{ path: ['ttl', 'invalid'] }] });
    expect(await refused({ use_count: 0 })).toEqual({ errors: [{ path: ['use_count', 'invalid'] }] });
  });

  test('are at most 256 that can be used, also concurrently', async () => {
    await using database = openDatabase(opened.database_address, 1);
    const now = opened.clock.now().toISOString();
    const insert = (count: number, prefix: string, values: ReturnType<typeof sql>) =>
      database.queries.execute(sql`
        insert into group_invites (code, group_id, create_ts, expire_ts, uses_left)
        select ${prefix} || gen_random_uuid(), ${game.group_id}, ${now}::timestamptz, ${values}
        from generate_series(1, ${count}::int)`);
    await insert(255, 'open', sql`null, null`);
    await insert(10, 'expired', sql`${now}::timestamptz, null`);
    await insert(10, 'used', sql`${now}::timestamptz, 0`);
    const answers = await Promise.all(Array.from({ length: 4 }, () => call('POST', `${group}/invites`, owner())));
    const too_many = '400 GROUP_TOO_MANY_INVITES';
    expect(answers.filter((answer) => answer !== too_many)).toEqual([{ code: expect.any(String) }]);
    expect(answers.filter((answer) => answer === too_many)).toHaveLength(3);
  });

  test('admit a person once', async () => {
    const person = await guest();
    const code = await invite();
    expect(code).toMatch(/^[A-Z2-9]{8}$/);
    expect((await call('GET', `/group/invites/${code}`, person.token)).group.group_id).toBe(game.group_id);
    expect(await consume(code, person)).toEqual({ group_id: game.group_id });
    expect(await consume(code, person)).toBe('400 GROUP_ALREADY_MEMBER');
    expect(await members()).toContain(person.identity_id);
    // A member sees the games of the group.
    expect((await call('GET', '/cloud/games', person.token)).games).toHaveLength(1);
  });

  test('have codes that people may type in small letters, with blanks and dashes', async () => {
    const person = await guest();
    const code = (await invite()).toLowerCase();
    const typed = encodeURIComponent(` ${code.slice(0, 4)}-${code.slice(4)}`);
    expect((await call('GET', `/group/invites/${typed}`, person.token)).group.group_id).toBe(game.group_id);
    expect(await consume(typed, person)).toEqual({ group_id: game.group_id });
  });

  test('admit no more people than they allow, also concurrently', async () => {
    const code = await invite({ use_count: 3 });
    const people = await Promise.all(Array.from({ length: 8 }, guest));
    const answers = await Promise.all(people.map((person) => consume(code, person)));
    expect(answers.filter((answer) => typeof answer === 'object')).toHaveLength(3);
    expect(answers.filter((answer) => answer === '400 GROUP_INVITE_CODE_ALREADY_USED')).toHaveLength(5);
    expect(await members()).toHaveLength(4);
  });

  test('expire, and admit no banned person, who does not use them up', async () => {
    const [banned, other] = [await guest(), await guest()];
    await call('POST', `${group}/bans/${banned.identity_id}`, owner());
    const code = await invite({ use_count: 1, ttl: 60_000 });
    expect(await consume(code, banned)).toBe('400 GROUP_MEMBER_BANNED');
    opened.clock.advance(60_001);
    expect(await consume(code, other)).toBe('400 GROUP_INVITE_CODE_EXPIRED');
  });

  test('that have ended are not shown', async () => {
    const [used, expired] = [await invite({ use_count: 1, ttl: 60_000 }), await invite({ ttl: 60_000 })];
    const person = await guest();
    await consume(used, person);
    const show = (code: string) => call('GET', `/group/invites/${code}`, person.token);
    expect(await show(used)).toBe('400 GROUP_INVITE_CODE_ALREADY_USED');
    opened.clock.advance(60_001);
    expect(await show(expired)).toBe('400 GROUP_INVITE_CODE_EXPIRED');
    expect(await show(used)).toBe('400 GROUP_INVITE_CODE_ALREADY_USED');
  });
});

describe('a join request', () => {
  test('to an open group is made once, and the owner accepts or rejects it', async () => {
    const [liked, disliked] = [await guest(), await guest()];
    for (const { token } of [liked, disliked]) expect(await call('POST', `${group}/join-request`, token)).toEqual({});
    expect(await call('POST', `${group}/join-request`, liked.token)).toBe('400 GROUP_JOIN_REQUEST_ALREADY_EXISTS');
    const { join_requests } = await call('GET', `${group}/join-requests`, owner());
    expect(join_requests).toMatchObject([
      { identity: { identity_id: liked.identity_id, display_name: 'Guest' } },
      { identity: { identity_id: disliked.identity_id } },
    ]);
    await call('POST', `${group}/join-request/${liked.identity_id}`, owner(), { resolution: true });
    await call('POST', `${group}/join-request/${disliked.identity_id}`, owner(), { resolution: false });
    expect(await members()).toContain(liked.identity_id);
    expect(await members()).not.toContain(disliked.identity_id);
    expect((await call('GET', `${group}/join-requests`, owner())).join_requests).toEqual([]);
  });

  test('ends when an invite admits the person', async () => {
    const person = await guest();
    expect(await call('POST', `${group}/join-request`, person.token)).toEqual({});
    expect(await consume(await invite(), person)).toEqual({ group_id: game.group_id });
    expect((await call('GET', `${group}/join-requests`, owner())).join_requests).toEqual([]);
  });

  test('stays when something else changes, or when an open group is opened', async () => {
    const { token, identity_id } = await guest();
    await call('POST', `${group}/join-request`, token);
    await call('POST', `${group}/profile`, owner(), { bio: 'Hello', publicity: 'open' });
    expect(await members()).not.toContain(identity_id);
    expect((await call('GET', `${group}/join-requests`, owner())).join_requests).toHaveLength(1);
  });

  test('to a closed group is refused; once opened, the group admits those from before', async () => {
    const [early, late] = [await guest(), await guest()];
    await call('POST', `${group}/join-request`, early.token);
    await call('POST', `${group}/profile`, owner(), { publicity: 'closed' });
    expect(await call('POST', `${group}/join-request`, late.token)).toBe('400 GROUP_CANNOT_REQUEST_JOIN');
    expect(await call('GET', `${group}/members`, late.token)).toBe('403 GROUP_NOT_MEMBER');
    await call('POST', `${group}/profile`, owner(), { publicity: 'open' });
    expect(await members()).toContain(early.identity_id);
  });
});

test('bans: the owner cannot ban an identity that is missing, and others learn nothing about it', async () => {
  const { token } = await guest();
  const path = `${group}/bans/${crypto.randomUUID()}`;
  expect(await call('POST', path, owner())).toBe('404 IDENTITY_NOT_FOUND');
  expect(await call('POST', path, token)).toBe('403 GROUP_INSUFFICIENT_PERMISSIONS');
});

describe('a member leaves', () => {
  test('on their own, by a kick or by a ban; the owner transfers the group first', async () => {
    const [one, two, three] = [await guest(), await guest(), await guest()];
    const first_code = await invite();
    for (const person of [one, two, three]) await consume(first_code, person);
    expect(await call('POST', `${group}/leave`, one.token)).toEqual({});
    expect(await call('POST', `${group}/leave`, one.token)).toBe('403 GROUP_NOT_MEMBER');
    expect(await call('POST', `${group}/kick/${two.identity_id}`, owner())).toEqual({});
    expect(await call('POST', `${group}/bans/${three.identity_id}`, owner())).toEqual({});
    expect(await members()).toHaveLength(1);
    expect(await call('POST', `${group}/leave`, owner())).toBe('403 API_FORBIDDEN');
    expect((await call('GET', `${group}/bans`, owner())).banned_identities).toMatchObject([
      { identity: { identity_id: three.identity_id }, ban_ts: expect.any(String) },
    ]);

    await call('DELETE', `${group}/bans/${three.identity_id}`, owner());
    expect(await consume(first_code, three)).toBe('400 GROUP_INVITE_CODE_INVALID');
    await consume(await invite(), three);
    const transfer = { new_owner_identity_id: three.identity_id };
    expect(await call('POST', `${group}/transfer-owner`, owner(), transfer)).toEqual({});
    expect(await call('POST', `${group}/leave`, owner())).toEqual({});
    const { group: seen } = await call('GET', `${group}/profile`, three.token);
    expect(seen).toMatchObject({ owner_identity_id: three.identity_id, member_count: 1 });
  });
});

test('members: a change of an unlisted identity leaves nothing in the database', async () => {
  const unlisted_id = crypto.randomUUID();
  await call('DELETE', `${group}/bans/${unlisted_id}`, owner());
  await call('POST', `${group}/join-request/${unlisted_id}`, owner(), { resolution: true });
  await using database = openDatabase(opened.database_address, 1);
  const left = await database.queries.execute(sql`select topic from topics where topic like ${`%${unlisted_id}`}`);
  expect([...left]).toEqual([]);
});

test('members: the list has pages, and can be watched', async () => {
  const code = await invite();
  for (const person of await Promise.all(Array.from({ length: 4 }, guest))) await consume(code, person);
  const first = await call('GET', `${group}/members?count=3`, owner());
  const second = await call('GET', `${group}/members?count=3&anchor=${first.anchor}`, owner());
  expect(first.members).toHaveLength(3);
  expect(second).toEqual({ members: [expect.any(Object), expect.any(Object)], watch: first.watch });
  const all = [...first.members, ...second.members].map(({ identity }) => identity.identity_id);
  expect(new Set(all).size).toBe(5);
  const waiting = call('GET', `${group}/members?watch_index=${first.watch.index}`, owner());
  await consume(code, await guest());
  expect((await waiting).members).toHaveLength(6);
});

describe('the pages of a list', () => {
  const idsOf = (page: { members: { identity: Person }[] }) => page.members.map(({ identity }) => identity.identity_id);
  const pageAfter = (anchor: string) => call('GET', `${group}/members?count=2&anchor=${anchor}`, owner());

  /** Lets people join one after another. Returns all members in order, of which the owner is the first. */
  async function joinAll(count: number): Promise<string[]> {
    const code = await invite();
    for (const person of await Promise.all(Array.from({ length: count }, guest))) await consume(code, person);
    return await members();
  }

  test('have each person once, also those who were added in the same millisecond', async () => {
    await joinAll(4);
    await using database = openDatabase(opened.database_address, 1);
    await database.queries.execute(
      sql`update group_members set join_ts = '2030-01-01T00:00:00.123Z' where group_id = ${game.group_id}`,
    );
    const first = await call('GET', `${group}/members?count=2`, owner());
    const second = await pageAfter(first.anchor);
    const third = await pageAfter(second.anchor);
    expect([first, second, third].flatMap(idsOf)).toEqual(await members());
    expect(third.anchor).toBeUndefined();
  });

  test('go on after a person who has left the list meanwhile', async () => {
    const [, left, ...others] = await joinAll(3);
    const first = await call('GET', `${group}/members?count=2`, owner());
    expect(await call('POST', `${group}/kick/${left}`, owner())).toEqual({});
    expect(idsOf(await pageAfter(first.anchor))).toEqual(others);
  });

  test('begin at an anchor of an earlier release, too', async () => {
    const [, last = '', ...others] = await joinAll(3);
    expect(idsOf(await pageAfter(last))).toEqual(others);
  });

  test.each([
    'x',
    '1.',
    `1.2.${crypto.randomUUID()}`,
    `.${crypto.randomUUID()}`,
    `${'9'.repeat(15)}.${crypto.randomUUID()}`,
  ])('do not begin at %s, which is no anchor', async (anchor) => {
    expect(await pageAfter(anchor)).toBe('400 API_BAD_QUERY_PARAMETER');
  });
});
