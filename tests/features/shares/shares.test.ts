import { beforeAll, describe, expect, test } from 'bun:test';
import { sql } from 'drizzle-orm';
import { makeGame, type TestGame } from '../../support/game.ts';
import { find, makeControlledGame, seatOf } from '../../support/game-server.ts';
import { outcomeOf, shareService } from '../../support/suite.ts';
import { waitFor } from '../../support/wait.ts';
import { openSocket } from '../../support/watch/socket.ts';

const DAY_MS = 24 * 3_600_000;

const muster = shareService();
let game: TestGame;
let other: TestGame;
let lobby_id: string;
let other_lobby_id: string;
beforeAll(async () => {
  game = await makeControlledGame(muster, { game_modes: { default: { max_players: 1 } } });
  other = await makeGame(muster.api, muster.administrator_token);
  lobby_id = (await seatOf(find(muster, game))).lobby_id;
  other_lobby_id = (await seatOf(find(muster, game))).lobby_id;
}, 300_000);

const namespaceOf = ({ game_id, namespace_id }: TestGame) => `/cloud/games/${game_id}/namespaces/${namespace_id}`;

async function share(body: object = {}, of = game): Promise<{ share_id: string; token: string; url: string }> {
  return await muster.api.ok('POST', `${namespaceOf(of)}/shares`, { token: of.cloud_token, body });
}

/** Returns the outcome of each request that a share may allow, with a token. */
async function outcomesOf(token: string, { of = game, id = lobby_id } = {}): Promise<Record<string, string>> {
  const namespace = namespaceOf(of);
  const paths = {
    list: `${namespace}/matchmaker/lobbies`,
    lobby: `${namespace}/matchmaker/lobbies/${id}`,
    counters: `${namespace}/counters`,
    own: '/cloud/shares/current',
  };
  const outcomes: Record<string, string> = {};
  for (const [name, path] of Object.entries(paths)) outcomes[name] = outcomeOf(await muster.api.get(path, token));
  return outcomes;
}

const ALL = { list: '200', lobby: '200', counters: '200', own: '200' };
const NONE = { list: '404 GAME_NOT_FOUND', lobby: '404 GAME_NOT_FOUND', counters: '404 GAME_NOT_FOUND', own: '200' };
const REVOKED = Object.fromEntries(Object.keys(ALL).map((name) => [name, '403 TOKEN_REVOKED']));

describe('share links: are refused', () => {
  test("for another tenant's namespace, and for a lobby that is not in the namespace", async () => {
    const path = `${namespaceOf(game)}/shares`;
    expect(outcomeOf(await muster.api.post(path, other.cloud_token))).toBe('404 GAME_NOT_FOUND');
    expect(outcomeOf(await muster.api.get(path, other.cloud_token))).toBe('404 GAME_NOT_FOUND');
    const body = { lobby_id };
    const foreign = await muster.api.post(`${namespaceOf(other)}/shares`, other.cloud_token, body);
    expect(outcomeOf(foreign)).toBe('404 MATCHMAKER_LOBBY_NOT_FOUND');
    const staging = `/cloud/games/${game.game_id}/namespaces/${game.staging_id}/shares`;
    expect(outcomeOf(await muster.api.post(staging, game.cloud_token, body))).toBe('404 MATCHMAKER_LOBBY_NOT_FOUND');
  });

  test('for longer than 30 days, and to the token of a share', async () => {
    const path = `${namespaceOf(game)}/shares`;
    const long = await muster.api.post(path, game.cloud_token, { lifetime_ms: 30 * DAY_MS + 1 });
    expect(outcomeOf(long)).toBe('400 API_BAD_BODY');
    const { token } = await share();
    for (const answer of [await muster.api.post(path, token), await muster.api.get(path, token)]) {
      expect(outcomeOf(answer)).toBe('401 CLAIMS_MISSING_ENTITLEMENT');
    }
  });

  test('once a namespace has 100 of them', async () => {
    const full = await makeGame(muster.api, muster.administrator_token);
    // One after another, because all lock the namespace.
    for (let count = 0; count < 99; count += 1) await share({}, full);
    const path = `${namespaceOf(full)}/shares`;
    const two = await Promise.all([1, 2].map(() => muster.api.post(path, full.cloud_token)));
    expect(two.map(outcomeOf).toSorted()).toEqual(['200', '400 SHARES_TOO_MANY']);
    await muster.api.ok('DELETE', `${path}/${two.find(({ status }) => status === 200)?.body.share_id}`, {
      token: full.cloud_token,
    });
    await share({}, full);
    // Those that are revoked with all tokens of the game do not count.
    muster.clock.advance(1_000);
    const revoke = `/cloud/games/${full.game_id}/tokens/revoke`;
    await muster.api.ok('POST', revoke, { token: muster.administrator_token, body: {} });
    expect(outcomeOf(await muster.api.post(path, muster.administrator_token))).toBe('200');
  });
});

describe('share links: show', () => {
  test('one namespace, and nothing of others', async () => {
    const { share_id, token, url } = await share({ display_name: 'For testers' });
    const { game_id, namespace_id } = game;
    expect(url).toBe(`${muster.config.public_url}/hub/${game_id}/${namespace_id}#share=${token}`);
    expect(await outcomesOf(token)).toEqual(ALL);
    expect(await outcomesOf(token, { of: { ...game, namespace_id: game.staging_id } })).toEqual(NONE);
    expect(await outcomesOf(token, { of: other })).toEqual(NONE);
    const own = await muster.api.ok('GET', '/cloud/shares/current', { token });
    expect(own.share).toEqual({ game_id, namespace_id, expire_ts: expect.any(String) });
    const { shares } = await muster.api.ok('GET', `${namespaceOf(game)}/shares`, { token: game.cloud_token });
    expect(shares[0]).toMatchObject({ share_id, display_name: 'For testers', expire_ts: own.share.expire_ts });
  });

  test('one lobby, and nothing else of its namespace', async () => {
    const { token, url } = await share({ lobby_id: lobby_id.toUpperCase() });
    expect(url).toContain(`/lobbies/${lobby_id}#share=`);
    expect(await outcomesOf(token)).toEqual({ ...NONE, lobby: '200' });
    expect(await outcomesOf(token, { id: other_lobby_id })).toEqual(NONE);
    expect((await muster.api.ok('GET', '/cloud/shares/current', { token })).share.lobby_id).toBe(lobby_id);
  });

  test('with an entry in the audit log that has the lobby', async () => {
    await share({ lobby_id, display_name: 'for the audit log' });
    const log = `/cloud/games/${game.game_id}/audit-log`;
    const [entry] = (await muster.api.ok('GET', log, { token: game.cloud_token })).entries;
    expect(entry).toMatchObject({ operation: 'createShare', details: { lobby_id, display_name: 'for the audit log' } });
  });

  test('no code of a lobby, by which anyone could join', async () => {
    await muster.database.queries.execute(sql`update lobbies set code = 'SECRET' where lobby_id = ${lobby_id}`);
    const { token } = await share();
    const path = `${namespaceOf(game)}/matchmaker/lobbies/${lobby_id}`;
    expect((await muster.api.ok('GET', path, { token: game.cloud_token })).lobby.code).toBe('SECRET');
    expect((await muster.api.ok('GET', path, { token })).lobby.code).toBeUndefined();
    using socket = openSocket(muster.config.public_url, { token });
    const body = await socket.body(await socket.subscribe('lobby', path));
    expect(JSON.stringify(body)).toContain(lobby_id);
    expect(JSON.stringify(body)).not.toContain('SECRET');
  });

  test('no private lobby, which anyone who knows its id may join', async () => {
    const { token } = await share();
    const path = `${namespaceOf(game)}/matchmaker/lobbies`;
    const rowsFor = async (bearer: string) => (await muster.api.ok('GET', path, { token: bearer })).rows.length;
    const seen = await rowsFor(token);
    await muster.database.queries.execute(sql`
      update lobbies set publicity = 'private', changed = changed + 1 where lobby_id = ${lobby_id}`);
    await muster.database.queries.execute(sql`
      update topics set version = version + 1 where topic = ${`lobbies-of:${game.namespace_id}`}`);
    await waitFor(async () => (await rowsFor(token)) === seen - 1, 'the private lobby to be left out');
    expect(await rowsFor(game.cloud_token)).toBe(seen);
  });
});

describe('share links: end', () => {
  test('when they are revoked, at once and for watchers too', async () => {
    const [{ share_id, token }, kept] = [await share(), await share()];
    expect(await outcomesOf(token)).toEqual(ALL);
    using socket = openSocket(muster.config.public_url, { token });
    await socket.body(await socket.subscribe('list', `${namespaceOf(game)}/matchmaker/lobbies`));
    const path = `${namespaceOf(game)}/shares/${share_id}`;
    expect(outcomeOf(await muster.api.call('DELETE', path, { token: other.cloud_token }))).toBe('404 GAME_NOT_FOUND');
    await muster.api.ok('DELETE', path, { token: game.cloud_token });
    await waitFor(
      () => socket.frames.some(({ type, error }) => type === 'error' && error?.code === 'TOKEN_REVOKED'),
      'the subscription to end',
    );
    await waitFor(async () => Bun.deepEquals(await outcomesOf(token), REVOKED), 'the token to be refused');
    expect(await outcomesOf(kept.token)).toEqual(ALL);
    expect(outcomeOf(await muster.api.call('DELETE', path, { token: game.cloud_token }))).toBe('404 SHARE_NOT_FOUND');
  });

  test('only if they exist: a delete of another id leaves nothing in the database', async () => {
    const share_id = crypto.randomUUID();
    const path = `${namespaceOf(game)}/shares/${share_id}`;
    expect(outcomeOf(await muster.api.call('DELETE', path, { token: game.cloud_token }))).toBe('404 SHARE_NOT_FOUND');
    const topics = await muster.database.queries.execute(sql`select from topics where topic = ${`share:${share_id}`}`);
    expect(topics).toHaveLength(0);
  });

  test('when all tokens of the game are revoked', async () => {
    const revoked = await makeGame(muster.api, muster.administrator_token);
    const { token } = await share({}, revoked);
    expect((await outcomesOf(token, { of: revoked })).list).toBe('200');
    const path = `/cloud/games/${revoked.game_id}/tokens/revoke`;
    // A token that was made within the same millisecond counts as newer.
    muster.clock.advance(1_000);
    await muster.api.ok('POST', path, { token: muster.administrator_token, body: {} });
    await waitFor(
      async () => (await outcomesOf(token, { of: revoked })).list === '403 TOKEN_REVOKED',
      'the token to be refused',
    );
    const listed = async () => {
      const { shares } = await muster.api.ok('GET', `${namespaceOf(revoked)}/shares`, {
        token: muster.administrator_token,
      });
      return shares.map(({ share_id }: { share_id: string }) => share_id);
    };
    expect(await listed()).toEqual([]);
    // A link that is made at once has the time of the revocation, and is valid.
    const { share_id } = await share({}, { ...revoked, cloud_token: muster.administrator_token });
    expect(await listed()).toEqual([share_id]);
  });

  test('when they expire, and are no longer listed', async () => {
    const { token } = await share({ lifetime_ms: 60_000 });
    expect(await outcomesOf(token)).toEqual(ALL);
    // A minute of tolerance for clocks that differ.
    muster.clock.advance(121_000);
    expect((await outcomesOf(token)).list).toBe('401 CLAIMS_ENTITLEMENT_EXPIRED');
    const { shares } = await muster.api.ok('GET', `${namespaceOf(game)}/shares`, { token: game.cloud_token });
    const now = muster.clock.now().toISOString();
    expect(shares.every(({ expire_ts }: { expire_ts: string }) => expire_ts > now)).toBe(true);
  });
});

test('share links: no token is stored, and the audit log says who made and revoked one', async () => {
  const { share_id, token } = await share({ display_name: 'Audited' });
  await muster.api.ok('DELETE', `${namespaceOf(game)}/shares/${share_id}`, { token: game.cloud_token });
  const { entries } = await muster.api.ok('GET', `/cloud/games/${game.game_id}/audit-log`, { token: game.cloud_token });
  expect(entries.slice(0, 2)).toMatchObject([
    { operation: 'revokeShare', details: { share_id } },
    { operation: 'createShare', details: { share_id, display_name: 'Audited' } },
  ]);
  const rows = await muster.database.queries.execute(sql`
    select to_jsonb(shares)::text as row from shares union all select to_jsonb(audit_entries)::text from audit_entries`);
  expect(JSON.stringify([...rows])).not.toContain(token.split('.').at(-1) ?? token);
});
