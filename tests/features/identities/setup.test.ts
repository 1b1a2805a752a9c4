import { beforeAll, describe, expect, test } from 'bun:test';
import { contractProblems } from '../../support/contract.ts';
import { makeGame, type TestGame } from '../../support/game.ts';
import { makeGuest } from '../../support/people.ts';
import { openServiceTokens } from '../../support/service-tokens.ts';
import { outcomeOf, shareService } from '../../support/suite.ts';

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;
const SELF = '/identity/identities/self/profile';

const muster = shareService();
let game: TestGame;
let other: TestGame;
beforeAll(async () => {
  game = await makeGame(muster.api, muster.administrator_token);
  other = await makeGame(muster.api, muster.administrator_token);
});

const setUp = (token: string | undefined, body: object = {}) => muster.api.post('/identity/identities', token, body);
const goOn = (existing_identity_token: unknown) => setUp(game.public_token, { existing_identity_token });
const read = (path: string, token: string) => muster.api.ok('GET', path, { token });

describe('setting up an identity is refused', () => {
  test("without a token of a game's clients", async () => {
    expect(outcomeOf(await setUp(undefined))).toBe('401 API_UNAUTHORIZED');
    for (const token of [game.cloud_token, game.service_token, muster.administrator_token]) {
      expect(outcomeOf(await setUp(token))).toBe('401 CLAIMS_MISSING_ENTITLEMENT');
    }
  });

  test('for a value that is no string, or too long', async () => {
    for (const existing of [1, {}, 'x'.repeat(8_193)]) expect(outcomeOf(await goOn(existing))).toBe('400 API_BAD_BODY');
  });
});

describe('a client', () => {
  test('gets a guest with everything that clients need', async () => {
    const { body } = await setUp(game.public_token);
    expect(contractProblems('IdentitySetupResponse', body)).toEqual([]);
    expect(body).toMatchObject({ game_id: game.game_id, identity: { display_name: 'Guest', is_registered: false } });
    expect(body.identity_token).toStartWith('usr.');
    const { account_number } = body.identity;
    expect(account_number >= 0 && account_number <= 9_999).toBe(true);
  });

  test('with a stored token that is unreadable, or not of a person, gets a new guest', async () => {
    const { token, identity_id } = await makeGuest(muster.api, game);
    const unknown = await (await openServiceTokens(muster)).issue({
      kind: 'identity',
      identity_id: crypto.randomUUID(),
    });
    for (const existing of ['', 'nonsense', `${token}x`, game.public_token, game.cloud_token, unknown]) {
      const answer = await goOn(existing);
      expect(outcomeOf(answer)).toBe('200');
      expect(answer.body.identity.identity_id).not.toBe(identity_id);
    }
  });

  test('gets a guest with a development token too', async () => {
    const path = `/cloud/games/${game.game_id}/namespaces/${game.namespace_id}/tokens/development`;
    const { token } = await muster.api.ok('POST', path, { token: game.cloud_token, body: { hostname: 'localhost' } });
    expect((await setUp(token)).body.game_id).toBe(game.game_id);
  });

  test('keeps its identity, in another game too, with a new token', async () => {
    const { identity_id, token } = await makeGuest(muster.api, game);
    await muster.api.ok('POST', SELF, { token, body: { display_name: 'Ann' } });
    const { body } = await setUp(other.public_token, { existing_identity_token: token });
    expect(body).toMatchObject({ game_id: other.game_id, identity: { identity_id, display_name: 'Ann' } });
    expect((await read(SELF, body.identity_token)).identity.identity_id).toBe(identity_id);
  });

  test("of a person who signed in at the hub gets a token that lasts no longer than a session's", async () => {
    const { body } = await goOn(muster.administrator_token);
    const administrator = await read(SELF, muster.administrator_token);
    expect(body.identity.identity_id).toBe(administrator.identity.identity_id);
    const lifetime_ms = Date.parse(body.identity_token_expire_ts) - muster.clock.now().getTime();
    expect(lifetime_ms).toBeLessThanOrEqual(15 * MINUTE_MS);
    muster.clock.advance(17 * MINUTE_MS);
    expect(outcomeOf(await muster.api.get(SELF, body.identity_token))).toBe('401 CLAIMS_ENTITLEMENT_EXPIRED');
  });

  test("of a person who signed in at the hub renews its token no longer than the session's", async () => {
    const tokens = await openServiceTokens(muster);
    const { identity_id } = (await read(SELF, muster.administrator_token)).identity;
    let token = await tokens.issue({ kind: 'identity', identity_id });
    const end = muster.clock.now().getTime() + 15 * MINUTE_MS;
    for (let round = 0; round < 3; round += 1) {
      muster.clock.advance(4 * MINUTE_MS);
      const { body } = await goOn(token);
      expect(body.identity.identity_id).toBe(identity_id);
      expect(Date.parse(body.identity_token_expire_ts)).toBeLessThanOrEqual(end);
      token = body.identity_token;
    }
    // In the leeway after its end, requests still accept it.
    muster.clock.advance(3 * MINUTE_MS);
    expect(outcomeOf(await muster.api.get(SELF, token))).toBe('200');
    expect((await goOn(token)).body.identity.identity_id).not.toBe(identity_id);
  });

  test('has a token that is valid until the stated time', async () => {
    const before_ms = muster.clock.now().getTime();
    const { body } = await setUp(game.public_token);
    const lifetime_ms = Date.parse(body.identity_token_expire_ts) - before_ms;
    expect(lifetime_ms >= 180 * DAY_MS && lifetime_ms < 180 * DAY_MS + MINUTE_MS).toBe(true);
    muster.clock.advance(180 * DAY_MS - MINUTE_MS);
    expect(outcomeOf(await muster.api.get(SELF, body.identity_token))).toBe('200');
    muster.clock.advance(3 * MINUTE_MS);
    expect(outcomeOf(await muster.api.get(SELF, body.identity_token))).toBe('401 CLAIMS_ENTITLEMENT_EXPIRED');
    const { body: renewed } = await goOn(body.identity_token);
    expect(renewed.identity.identity_id).not.toBe(body.identity.identity_id);
    expect(outcomeOf(await muster.api.get(SELF, renewed.identity_token))).toBe('200');
  });
});

describe('clients see', () => {
  test('themselves, others, and several people at once', async () => {
    const [one, two] = [await makeGuest(muster.api, game), await makeGuest(muster.api, game)];
    const { code } = await muster.api.ok('POST', `/group/groups/${game.group_id}/invites`, {
      token: muster.administrator_token,
    });
    await muster.api.ok('POST', `/group/invites/${code}/consume`, { token: one.token });
    const self = await read(SELF, one.token);
    expect(contractProblems('IdentityGetProfileResponse', self)).toEqual([]);
    expect(self.identity.groups).toEqual([
      {
        group: {
          group_id: game.group_id,
          display_name: 'Test team',
          external: { profile: `${muster.config.public_url}/hub/~groups/${game.group_id}` },
          is_developer: true,
        },
      },
    ]);
    const others_view = `/identity/identities/${one.identity_id}/profile`;
    const seen = await read(others_view, two.token);
    expect(contractProblems('IdentityGetProfileResponse', seen)).toEqual([]);
    expect(seen.identity).toEqual(self.identity);

    // A closed group is seen by its members only.
    const owner = { token: muster.administrator_token };
    const hidden = read(`${others_view}?watch_index=${seen.watch.index}`, two.token);
    const close = { ...owner, body: { publicity: 'closed' } };
    await muster.api.ok('POST', `/group/groups/${game.group_id}/profile`, close);
    expect((await hidden).identity.groups).toEqual([]);
    expect((await read(SELF, one.token)).identity.groups).toHaveLength(1);
    expect((await read(others_view, one.token)).identity.groups).toHaveLength(1);
    const shown = read(`${others_view}?watch_index=${(await hidden).watch.index}`, two.token);
    await muster.api.ok('POST', `/group/invites/${code}/consume`, { token: two.token });
    expect((await shown).identity.groups).toHaveLength(1);

    const batch = (what: string) =>
      read(
        `/identity/identities/batch/${what}?identity_ids=${two.identity_id},${two.identity_id.toUpperCase()},`,
        one.token,
      );
    const handles = await batch('handle');
    expect(contractProblems('IdentityGetHandlesResponse', handles)).toEqual([]);
    expect(handles.identities).toHaveLength(1);
    const summaries = await batch('summary');
    expect(contractProblems('IdentityGetSummariesResponse', summaries)).toEqual([]);
    expect(summaries.identities).toMatchObject([handles.identities[0]]);
  });

  test('changes of people', async () => {
    const { token } = await makeGuest(muster.api, game);
    const first = await read('/identity/events/live', token);
    expect(contractProblems('IdentityWatchEventsResponse', first)).toEqual([]);
    expect(first.events).toEqual([]);
    const next = read(`/identity/events/live?watch_index=${first.watch.index}`, token);
    await muster.api.ok('POST', SELF, { token, body: { bio: 'Here' } });
    expect(contractProblems('IdentityWatchEventsResponse', await next)).toEqual([]);
    expect((await next).events).toHaveLength(1);
  });

  test('nothing of an unknown identity', async () => {
    const { token } = await makeGuest(muster.api, game);
    const path = (identity_id: string) => `/identity/identities/${identity_id}/profile`;
    expect(outcomeOf(await muster.api.get(path(crypto.randomUUID()), token))).toBe('404 IDENTITY_NOT_FOUND');
    expect(outcomeOf(await muster.api.get(path('nobody'), token))).toBe('404 API_NOT_FOUND');
    const unknown = await read(`/identity/identities/batch/handle?identity_ids=${crypto.randomUUID()}`, token);
    expect(unknown.identities).toEqual([]);
  });
});

describe('an identity that asked for its deletion', () => {
  const wish = (method: 'POST' | 'DELETE', token: string) =>
    muster.api.ok(method, '/identity/identities/self/delete-request', {
      token,
      ...(method === 'POST' ? { body: {} } : {}),
    });

  test('sees the pending deletion until it is cancelled', async () => {
    const { token } = await makeGuest(muster.api, game);
    expect(await wish('POST', token)).toEqual({});
    expect((await read(SELF, token)).identity.awaiting_deletion).toBe(true);
    expect(await wish('POST', token)).toEqual({});
    expect(await wish('DELETE', token)).toEqual({});
    expect((await read(SELF, token)).identity).not.toHaveProperty('awaiting_deletion');
  });
});
