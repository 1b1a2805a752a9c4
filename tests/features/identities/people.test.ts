import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { sql } from 'drizzle-orm';
import {
  createIdentities,
  type Identities,
  type IdentitiesDependencies,
} from '../../../src/features/identities/identities.ts';
import { CLOCK_SKEW_MAX_MS } from '../../../src/platform/clock.ts';
import { openDatabase } from '../../../src/platform/database/database.ts';
import { ServiceError } from '../../../src/platform/errors.ts';
import type { ServiceEvent } from '../../../src/platform/events.ts';
import { loadKey } from '../../../src/platform/tokens/keys.ts';
import { createTokens } from '../../../src/platform/tokens/tokens.ts';
import { createTestClock } from '../../support/clock.ts';
import { openTestDatabase } from '../../support/database/database.ts';
import { makeGame, type TestGame } from '../../support/game.ts';
import { makeGuest } from '../../support/people.ts';
import { openTestService, type TestService } from '../../support/service.ts';
import { waitFor } from '../../support/wait.ts';

const DAY_MS = 24 * 3_600_000;

let opened: TestService;
let game: TestGame;
beforeAll(async () => {
  opened = await openTestService();
  game = await makeGame(opened.api, opened.administrator_token);
});
afterAll(() => opened[Symbol.asyncDispose]());

const guest = () => makeGuest(opened.api, game);

describe('profiles', () => {
  test('identities: others see a guest without its private members', async () => {
    const { token, identity_id } = await guest();
    const { identity, watch } = await opened.api.ok('GET', '/identity/identities/self/profile', { token });
    expect(identity).toEqual({
      identity_id,
      display_name: 'Guest',
      account_number: expect.any(Number),
      avatar_url: `${opened.config.public_url}/media/default-avatar.svg`,
      is_registered: false,
      external: { profile: `${opened.config.public_url}/hub/~people/${identity_id}` },
      following: false,
      is_following_me: false,
      is_mutual_following: false,
      is_admin: false,
      follower_count: 0,
      following_count: 0,
      join_ts: expect.stringMatching(/Z$/),
      bio: '',
      linked_accounts: [],
      groups: [],
      games: [],
    });
    expect(watch.index).toEqual(expect.any(String));
  });

  const BAD: [object, string][] = [
    [{ display_name: '' }, 'display-name.too-short'],
    [{ display_name: 'x'.repeat(25) }, 'display-name.too-long'],
    [{ display_name: ' x' }, 'display-name.invalid'],
    [{ account_number: 10_000 }, 'account-number.invalid'],
    [{ account_number: -1 }, 'account-number.invalid'],
    [{ bio: 'x'.repeat(201) }, 'bio.invalid'],
    [{ bio: 'a\nb\nc\nd\ne\nf' }, 'bio.invalid'],
    [{ bio: 'a\tb' }, 'bio.invalid'],
  ];
  for (const [body, problem] of BAD) {
    test(`${JSON.stringify(body).slice(0, 40)} is refused: ${problem}`, async () => {
      const { token } = await guest();
      const path = '/identity/identities/self/profile';
      const { errors } = await opened.api.ok('POST', `${path}/validate`, { token, body });
      expect(errors.map((error: { path: string[] }) => error.path.join('.'))).toEqual([problem]);
      expect(await opened.api.post(path, token, body)).toMatchObject({
        status: 400,
        body: { code: 'VALIDATION_ERROR' },
      });
    });
  }

  test('identities: a change wakes its watchers and changes nothing else', async () => {
    const { token, identity_id } = await guest();
    const path = `/identity/identities/${identity_id}/profile`;
    const before = await opened.api.ok('GET', path, { token });
    const waiting = opened.api.ok('GET', `${path}?watch_index=${before.watch.index}`, { token });
    const live = opened.api.ok('GET', `/identity/events/live?watch_index=${before.watch.index}`, { token });
    await opened.api.ok('POST', '/identity/identities/self/profile', {
      token,
      body: { display_name: 'Ann', bio: 'a\nb' },
    });
    const { identity } = await waiting;
    expect(identity).toEqual({ ...before.identity, display_name: 'Ann', bio: 'a\nb' });
    expect((await live).events).toMatchObject([{ kind: { identity_update: { identity } } }]);
  });

  test('identities: a list returns existing ones, at most 64', async () => {
    const [one, two] = [await guest(), await guest()];
    const readList = (ids: string[], what = 'handle') =>
      opened.api.get(`/identity/identities/batch/${what}?identity_ids=${ids.join(',')}`, one.token);
    const { identities } = (await readList([one.identity_id, two.identity_id, crypto.randomUUID()], 'summary')).body;
    expect(identities).toHaveLength(2);
    const repeated = `/identity/identities/batch/handle?identity_ids=${one.identity_id}&identity_ids=${two.identity_id}`;
    expect((await opened.api.get(repeated, one.token)).body.identities).toHaveLength(2);
    expect((await readList(['nonsense'])).body.code).toBe('API_BAD_QUERY_PARAMETER');
    const many = Array.from({ length: 65 }, () => crypto.randomUUID());
    expect((await readList(many)).body.code).toBe('API_BAD_QUERY_PARAMETER');
  });
});

/** Creates identities without anything else of a service, in a database of their own. */
async function openIdentities(replaced: Partial<IdentitiesDependencies> = {}) {
  await using opening = new AsyncDisposableStack();
  const test_database = opening.use(await openTestDatabase());
  const database = opening.use(openDatabase(test_database.address, 4));
  const clock = createTestClock();
  const tokens = await createTokens(await loadKey(database.queries, clock, 'token'), clock);
  const identities = createIdentities({
    database,
    clock,
    tokens,
    events: { emit() {} },
    groupsThatList: async () => [],
    whichAreListed: async () => [],
    discardPicture: async () => {},
    isMemberOrAsksToJoin: async () => false,
    leaveGroups: async () => {},
    refresh_key: await loadKey(database.queries, clock, 'refresh'),
    ...replaced,
  });
  const everything = opening.move();
  return { identities, clock, database, [Symbol.asyncDispose]: () => everything.disposeAsync() };
}

test('identities: a deletion that fails is repeated, and those after it happen', async () => {
  const emitted: ServiceEvent[] = [];
  let failing: string | undefined;
  await using only = await openIdentities({
    events: { emit: (event) => void emitted.push(event) },
    leaveGroups: async (identity_id) => {
      if (identity_id === failing) throw new Error('its group is busy');
    },
  });
  const { identities, clock } = only;
  const [first, second] = [await identities.createGuest(), await identities.createGuest()];
  for (const { identity_id } of [first, second]) {
    await identities.requestDeletion(identity_id);
    clock.advance(60_000);
  }
  failing = first.identity_id;
  clock.advance(30 * DAY_MS);
  const working = new AbortController();
  const { stopped } = identities.startForgetting(working.signal);
  await waitFor(() => emitted.some(({ event }) => event === 'loop_failed'), 'the failure to be logged');
  await expect(identities.get(second.identity_id)).rejects.toMatchObject({ code: 'IDENTITY_NOT_FOUND' });
  expect(await identities.get(first.identity_id)).toMatchObject({ display_name: 'Guest' });
  failing = undefined;
  await waitFor(() => emitted.filter(({ event }) => event === 'identity_forgotten').length === 2, 'the repetition');
  working.abort();
  await stopped;
});

test('identities: a deletion that is due cannot be cancelled, because the person has left groups', async () => {
  const cancelled: unknown[] = [];
  await using only = await openIdentities({
    leaveGroups: async (identity_id) => {
      cancelled.push(
        await identities
          .cancelDeletion(identity_id)
          .catch((error: unknown) => error instanceof ServiceError && error.code),
      );
    },
  });
  const { identities, clock } = only;
  const { identity_id } = await identities.createGuest();
  await identities.requestDeletion(identity_id);
  clock.advance(30 * DAY_MS + CLOCK_SKEW_MAX_MS);
  await forgetDue(identities);
  expect(new Set(cancelled)).toEqual(new Set(['IDENTITY_NOT_FOUND']));
  await expect(identities.get(identity_id)).rejects.toMatchObject({ code: 'IDENTITY_NOT_FOUND' });
});

/** Runs one step of the loop that deletes identities. */
async function forgetDue(identities: Identities): Promise<void> {
  const working = new AbortController();
  const { stopped } = identities.startForgetting(working.signal);
  working.abort();
  await stopped;
}

test('identities: a process with a slower clock can cancel a deletion until it is due there', async () => {
  const left: string[] = [];
  await using only = await openIdentities({ leaveGroups: async (identity_id) => void left.push(identity_id) });
  const { identities, clock } = only;
  const { identity_id } = await identities.createGuest();
  await identities.requestDeletion(identity_id);
  clock.advance(30 * DAY_MS + CLOCK_SKEW_MAX_MS / 2);
  await forgetDue(identities);
  expect(left).toEqual([]);
  clock.advance(-CLOCK_SKEW_MAX_MS);
  await identities.cancelDeletion(identity_id);
  expect(await identities.get(identity_id)).toMatchObject({ delete_ts: null });
});

test('identities: a cancellation that waits until the deletion is due is refused', async () => {
  await using only = await openIdentities();
  const { identities, clock, database } = only;
  const { identity_id } = await identities.createGuest();
  await identities.requestDeletion(identity_id);
  let cancelling: Promise<unknown> = Promise.resolve();
  await database.transact(async (tx) => {
    await identities.lock(tx, identity_id);
    cancelling = identities.cancelDeletion(identity_id).catch((error: unknown) => error);
    await waitFor(async () => {
      const waiting = await database.queries.execute(sql`select from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock'`);
      return waiting.length > 0;
    }, 'the cancellation to wait for the row');
    clock.advance(30 * DAY_MS);
  });
  expect(await cancelling).toMatchObject({ code: 'IDENTITY_NOT_FOUND' });
});

test('identities: a deletion that is asked for again happens when it was first due', async () => {
  await using only = await openIdentities();
  const { identities, clock } = only;
  const { identity_id } = await identities.createGuest();
  await identities.requestDeletion(identity_id);
  const { delete_ts } = await identities.get(identity_id);
  clock.advance(30 * DAY_MS);
  await identities.requestDeletion(identity_id);
  expect((await identities.get(identity_id)).delete_ts).toEqual(delete_ts);
});

test('identities: two processes that delete one person report it once', async () => {
  const emitted: ServiceEvent[] = [];
  const both = Promise.withResolvers<void>();
  let leaving = 0;
  await using only = await openIdentities({
    events: { emit: (event) => void emitted.push(event) },
    async leaveGroups() {
      leaving += 1;
      if (leaving === 2) both.resolve();
      await both.promise;
    },
  });
  const { identities, clock } = only;
  const { identity_id } = await identities.createGuest();
  await identities.requestDeletion(identity_id);
  clock.advance(31 * DAY_MS);
  await Promise.all([forgetDue(identities), forgetDue(identities)]);
  expect(emitted).toEqual([{ event: 'identity_forgotten', identity_id }]);
});

test('identities: a person who joins a group during the deletion is erased only after leaving it', async () => {
  let is_in_group = true;
  let leaving = 0;
  await using only = await openIdentities({
    isMemberOrAsksToJoin: async () => is_in_group,
    async leaveGroups() {
      leaving += 1;
    },
  });
  const { identities, clock } = only;
  const { identity_id } = await identities.createGuest();
  await identities.requestDeletion(identity_id);
  clock.advance(31 * DAY_MS);
  await forgetDue(identities);
  expect(await identities.get(identity_id)).toMatchObject({ display_name: 'Guest' });
  is_in_group = false;
  await forgetDue(identities);
  await expect(identities.get(identity_id)).rejects.toMatchObject({ code: 'IDENTITY_NOT_FOUND' });
  expect(leaving).toBe(2);
});

test('identities: a deletion happens after 30 days, unless it is cancelled', async () => {
  await using only = await openIdentities();
  const { identities, clock } = only;
  const [leaving, staying] = [await identities.createGuest(), await identities.createGuest()];
  const { refresh_token } = await identities.sessions.open(leaving.identity_id);
  for (const { identity_id } of [leaving, staying]) await identities.requestDeletion(identity_id);
  await identities.cancelDeletion(staying.identity_id);

  clock.advance(30 * DAY_MS - 60_000);
  await forgetDue(identities);
  expect(await identities.get(leaving.identity_id)).toMatchObject({ display_name: 'Guest' });
  clock.advance(120_000);
  await forgetDue(identities);
  await expect(identities.get(leaving.identity_id)).rejects.toMatchObject({ code: 'IDENTITY_NOT_FOUND' });
  await expect(identities.sessions.refresh(refresh_token)).rejects.toMatchObject({ code: 'TOKEN_REVOKED' });
  expect(await identities.get(staying.identity_id)).toMatchObject({ display_name: 'Guest', delete_ts: null });
});
