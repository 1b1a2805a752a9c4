import { beforeEach, describe, expect, test } from 'bun:test';
import { createTestClock } from '../../support/clock.ts';
import { makeGame, type TestGame } from '../../support/game.ts';
import { makeGuest, makeMember, type Person } from '../../support/people.ts';
import { openTestService } from '../../support/service.ts';
import { openServiceTokens } from '../../support/service-tokens.ts';
import { outcomeOf, shareService } from '../../support/suite.ts';
import { waitFor } from '../../support/wait.ts';

const DAY_MS = 24 * 3_600_000;
const REVOKED = '403 TOKEN_REVOKED';

const muster = shareService();
let game: TestGame;
let group: string;
let member: Person;
beforeEach(async () => {
  game = await makeGame(muster.api, muster.administrator_token);
  group = `/group/groups/${game.group_id}`;
  member = await makeMember(muster, game);
});

const cloudTokens = () => `/cloud/games/${game.game_id}/tokens/cloud`;
const serviceTokens = () => `/games/${game.game_id}/environments/${game.namespace_id}/tokens/service`;
const servers = () => `/games/${game.game_id}/environments/${game.namespace_id}/servers`;
const make = async (path: string, token: string): Promise<string> =>
  (await muster.api.ok('POST', path, { token, body: {} })).token;
const inspect = async (token: string) => outcomeOf(await muster.api.get('/cloud/auth/inspect', token));
/** The revocation reaches a process after a moment. */
const isRevoked = (token: string) => waitFor(async () => (await inspect(token)) === REVOKED, 'the token to be refused');

const REMOVALS = [
  { way: 'leaves', go: () => muster.api.ok('POST', `${group}/leave`, { token: member.token, body: {} }) },
  { way: 'is kicked', go: () => actAsOwner('kick') },
  { way: 'is banned', go: () => actAsOwner('bans') },
];
const actAsOwner = (what: string) =>
  muster.api.ok('POST', `${group}/${what}/${member.identity_id}`, { token: muster.administrator_token, body: {} });

describe('tokens of a game', () => {
  for (const { way, go } of REMOVALS) {
    test(`and invites end once their member ${way}: cloud and service tokens, and those made with them`, async () => {
      const { code } = await muster.api.ok('POST', `${group}/invites`, { token: member.token, body: {} });
      const cloud = await make(cloudTokens(), member.token);
      const tokens = [cloud, await make(cloudTokens(), cloud)];
      const service = await make(serviceTokens(), cloud);
      expect(outcomeOf(await muster.api.get(servers(), service))).toBe('200');
      await go();
      const joined = await muster.api.post(`/group/invites/${code}/consume`, member.token);
      expect(outcomeOf(joined)).toBe('400 GROUP_INVITE_CODE_INVALID');
      for (const token of tokens) await isRevoked(token);
      await waitFor(async () => outcomeOf(await muster.api.get(servers(), service)) === REVOKED, 'the service token');
      expect(outcomeOf(await muster.api.post(cloudTokens(), cloud))).toBe(REVOKED);
      expect(outcomeOf(await muster.api.post(serviceTokens(), cloud))).toBe(REVOKED);
      // Tokens of players stay valid, and the owner issues new ones.
      expect((await makeGuest(muster.api, game)).identity_id).toBeString();
      const renewed = await make(cloudTokens(), muster.administrator_token);
      expect(await inspect(renewed)).toBe('200');
      expect(outcomeOf(await muster.api.get(servers(), await make(serviceTokens(), renewed)))).toBe('200');
    });
  }

  test('are refused as revoked also by calls that do not accept their kind', async () => {
    const service = await make(serviceTokens(), game.cloud_token);
    const inspected = () => muster.api.get('/cloud/auth/inspect', service).then(outcomeOf);
    expect(await inspected()).toBe('401 CLAIMS_MISSING_ENTITLEMENT');
    await muster.api.ok('POST', `/cloud/games/${game.game_id}/tokens/revoke`, {
      token: muster.administrator_token,
      body: {},
    });
    await waitFor(async () => (await inspected()) === REVOKED, 'the service token to be refused as revoked');
  });

  test('that are issued during a kick of their member are refused afterwards', async () => {
    const made: Promise<string | undefined>[] = [];
    const cloud = await make(cloudTokens(), member.token);
    for (let round = 0; round < 30; round += 1) {
      if (round === 10) made.push(actAsOwner('kick').then(() => undefined));
      for (const token of [member.token, cloud]) {
        made.push(muster.api.post(cloudTokens(), token).then(({ body }) => body.token));
      }
      await Bun.sleep(1);
    }
    const tokens = (await Promise.all(made)).filter((token) => token !== undefined);
    expect(tokens.length).toBeGreaterThan(0);
    for (const token of tokens) await isRevoked(token);
  });

  test('can be revoked by the owner of the group only', async () => {
    const path = `/cloud/games/${game.game_id}/tokens/revoke`;
    expect(outcomeOf(await muster.api.post(path, member.token))).toBe('403 GROUP_INSUFFICIENT_PERMISSIONS');
    expect(outcomeOf(await muster.api.post(path, game.cloud_token))).toBe('401 CLAIMS_MISSING_ENTITLEMENT');
    expect(await inspect(game.cloud_token)).toBe('200');
    expect(outcomeOf(await muster.api.post(path, muster.administrator_token))).toBe('200');
    await isRevoked(game.cloud_token);
    expect(await inspect(await make(cloudTokens(), member.token))).toBe('200');
  });

  test('are revoked together, also those of a process whose clock is ahead', async () => {
    const clock = createTestClock();
    clock.advance(5_000);
    const { database_address } = muster;
    await using ahead = await openTestService({}, { database_of: { database_address, clock } });
    const revoke = `/cloud/games/${game.game_id}/tokens/revoke`;
    const owner = { token: muster.administrator_token, body: {} };
    for (let round = 0; round < 2; round += 1) {
      const early = (await ahead.api.ok('POST', cloudTokens(), owner)).token;
      const here = await make(cloudTokens(), owner.token);
      for (const token of [early, here]) expect(await inspect(token)).toBe('200');
      await muster.api.ok('POST', revoke, owner);
      for (const token of [early, here]) await isRevoked(token);
    }
  });

  test('that wait for a change are refused at once', async () => {
    const path = `/cloud/games/${game.game_id}`;
    const { watch } = await muster.api.ok('GET', path, { token: game.cloud_token });
    const waiting = muster.api.get(`${path}?watch_index=${watch.index}`, game.cloud_token);
    await muster.api.ok('POST', `${path}/tokens/revoke`, { token: muster.administrator_token, body: {} });
    expect(outcomeOf(await waiting)).toBe(REVOKED);
  });
});

test('revoking: a deleted owner: another member owns the group, and their tokens are refused everywhere', async () => {
  const tokens = await openServiceTokens(muster);
  const lasting = await tokens.issue(
    { kind: 'identity', identity_id: member.identity_id },
    { lifetime_ms: 365 * DAY_MS },
  );
  const second = await makeMember(muster, game);
  const third = await makeMember(muster, game);
  const owner = { token: muster.administrator_token };
  const transfer = { new_owner_identity_id: member.identity_id };
  await muster.api.ok('POST', `${group}/transfer-owner`, { ...owner, body: transfer });
  await muster.api.ok('POST', `${group}/leave`, { ...owner, body: {} });
  const cloud = await make(cloudTokens(), lasting);
  await muster.api.ok('POST', '/identity/identities/self/delete-request', { token: lasting, body: {} });
  muster.clock.advance(31 * DAY_MS);
  // Another process on the database deletes identities at its start.
  await using other = await openTestService({}, { database_of: muster });
  const isForgotten = () =>
    other.events.some((event) => event.event === 'identity_forgotten' && event.identity_id === member.identity_id);
  await waitFor(isForgotten, 'the owner to be deleted');

  await isRevoked(lasting);
  const create = { display_name: 'Mine still', developer_group_id: game.group_id };
  expect(outcomeOf(await muster.api.post('/cloud/games', lasting, create))).toBe(REVOKED);
  expect(outcomeOf(await muster.api.get('/identity/identities/self/profile', lasting))).toBe(REVOKED);
  await isRevoked(cloud);
  const { group: seen } = await muster.api.ok('GET', `${group}/summary`, { token: other.administrator_token });
  expect(seen.owner_identity_id).toBe(second.identity_id);
  expect(seen.member_count).toBe(2);
  expect(third.identity_id).not.toBe(second.identity_id);
});

test('revoking: a deleted owner without other members: an administrator owns the group', async () => {
  const owner = { token: muster.administrator_token };
  await muster.api.ok('POST', `${group}/transfer-owner`, {
    ...owner,
    body: { new_owner_identity_id: member.identity_id },
  });
  await muster.api.ok('POST', `${group}/leave`, { ...owner, body: {} });
  await muster.api.ok('POST', '/identity/identities/self/delete-request', { token: member.token, body: {} });
  muster.clock.advance(31 * DAY_MS);
  await using other = await openTestService({}, { database_of: muster });
  const token = other.administrator_token;
  const seen = await waitFor(async () => {
    const { group: now } = await muster.api.ok('GET', `${group}/summary`, { token });
    return now.owner_identity_id !== member.identity_id && now;
  }, 'the group to have another owner');
  expect(seen).toMatchObject({ member_count: 1, is_current_identity_member: true });
});

test('revoking: an administrator is never deleted', async () => {
  const path = '/identity/identities/self/delete-request';
  expect(outcomeOf(await muster.api.post(path, muster.administrator_token))).toBe('403 API_FORBIDDEN');
});
