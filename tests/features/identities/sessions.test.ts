import { describe, expect, test } from 'bun:test';
import { sessionRoutes } from '../../../src/features/identities/session-routes.ts';
import { createSessions } from '../../../src/features/identities/sessions.ts';
import { openDatabase } from '../../../src/platform/database/database.ts';
import { DEADLINES } from '../../../src/platform/database/deadlines.ts';
import type { Answer } from '../../support/api.ts';
import { openTestApp } from '../../support/http-app.ts';
import { outcomeOf, shareService } from '../../support/suite.ts';
import { makeTokenMaker } from '../../support/token-maker.ts';

const COOKIE = 'rivet_user_refresh_token';
const GRACE_MS = 30_000;

const muster = shareService();

const refresh = (cookie?: string, body: object = {}, origin: string | undefined = muster.config.public_url) =>
  muster.api.call('POST', '/auth/tokens/identity', {
    body,
    headers: { ...(origin ? { origin } : {}), ...(cookie ? { cookie } : {}) },
  });
const cookieIn = (answer: { headers: Headers }) => answer.headers.get('set-cookie')?.split(';')[0] ?? '';
const identitiesIn = (answers: Answer[]) => new Set(answers.map(({ body }) => body.identity_id));

describe('sessions: a refresh', () => {
  test('is for pages of the service only', async () => {
    const elsewhere = await refresh(undefined, {}, 'https://elsewhere.example');
    expect(outcomeOf(elsewhere)).toBe('403 API_CORS_ORIGIN_NOT_ALLOWED');
    expect(outcomeOf(await refresh(undefined, {}, ''))).toBe('400 API_MISSING_HEADER');
  });

  test('gives the same person a new token and a new cookie', async () => {
    const first = await refresh();
    expect(first.body).toEqual({ token: expect.any(String), exp: expect.any(String), identity_id: expect.any(String) });
    expect(first.headers.getSetCookie()).toEqual([
      expect.stringMatching(new RegExp(`^${COOKIE}=usr_rf.*; Path=/auth/tokens/identity; .*HttpOnly`)),
      // A cookie of all paths, which game servers at this host would get.
      expect.stringMatching(new RegExp(`^${COOKIE}=; Path=/; Max-Age=0`)),
    ]);
    const second = await refresh(cookieIn(first));
    expect(second.body.identity_id).toBe(first.body.identity_id);
    expect(cookieIn(second)).not.toBe(cookieIn(first));
  });

  test('whose answer was lost can be repeated for 30 s, with the same outcome', async () => {
    const first = await refresh();
    const lost = await refresh(cookieIn(first));
    muster.clock.advance(GRACE_MS - 25_000);
    const repeated = await refresh(cookieIn(first));
    expect(repeated.body.identity_id).toBe(first.body.identity_id);
    expect(cookieIn(repeated)).toBe(cookieIn(lost));
    muster.clock.advance(GRACE_MS);
    expect(outcomeOf(await refresh(cookieIn(first)))).toBe('403 TOKEN_REVOKED');
    expect((await refresh(cookieIn(repeated))).body.identity_id).toBe(first.body.identity_id);
  });

  test('with a cookie whose successor was used is refused at once, because its answer was not lost', async () => {
    const first = await refresh();
    const second = await refresh(cookieIn(first));
    await refresh(cookieIn(second));
    expect(outcomeOf(await refresh(cookieIn(first)))).toBe('403 TOKEN_REVOKED');
  });

  test('by several tabs at once gives all of them one session', async () => {
    const first = await refresh();
    const answers = await Promise.all(Array.from({ length: 6 }, () => refresh(cookieIn(first))));
    expect(answers.map(outcomeOf)).toEqual(answers.map(() => '200'));
    expect(identitiesIn(answers)).toEqual(new Set([first.body.identity_id]));
    expect(new Set(answers.map(cookieIn)).size).toBe(1);
  });

  test('that is refused deletes the cookie, so that the browser can start over', async () => {
    const unknown = await refresh(`${COOKIE}=usr_rf.nonsense`);
    expect(outcomeOf(unknown)).toBe('403 TOKEN_REFRESH_NOT_FOUND');
    expect(unknown.headers.getSetCookie()).toEqual([
      expect.stringMatching(new RegExp(`^${COOKIE}=; Path=/auth/tokens/identity; Max-Age=0`)),
      expect.stringMatching(new RegExp(`^${COOKIE}=; Path=/; Max-Age=0`)),
    ]);
  });

  test('that the database does not answer in time keeps the cookie', async () => {
    const { identity_id } = (await refresh()).body;
    await using database = openDatabase(muster.database_address, 2, { ...DEADLINES, transaction_ms: 500 });
    const { tokens } = await makeTokenMaker();
    const refresh_key = { kty: 'oct', k: 'a2V5' };
    const sessions = createSessions({ database, clock: muster.clock, tokens, refresh_key, keep: async () => true });
    const noGuest = () => Promise.reject(new Error('the session gets no guest'));
    const public_url = 'https://play.example.com';
    await using app = await openTestApp(sessionRoutes({ sessions, createGuest: noGuest }, { public_url }), {
      public_url,
    });
    const cookie = `${COOKIE}=${(await sessions.open(identity_id)).refresh_token}`;
    const repeat = () =>
      app.api.call('POST', '/auth/tokens/identity', { body: {}, headers: { origin: public_url, cookie } });

    const connection = muster.database.openCopyConnection();
    await connection`begin`;
    await connection`select from refresh_tokens where identity_id = ${identity_id} for update`;
    const busy = await repeat();
    await connection`rollback`;
    await connection.end();
    expect([outcomeOf(busy), busy.headers.getSetCookie()]).toEqual(['503 DATABASE_BUSY', []]);
    expect((await repeat()).body.identity_id).toBe(identity_id);
  });

  test('takes the cookie of its path, which browsers send first, if there is one of all paths, too', async () => {
    const [first, other] = [await refresh(), await refresh()];
    const both = await refresh(`${cookieIn(first)}; ${cookieIn(other)}`);
    expect(both.body.identity_id).toBe(first.body.identity_id);
  });
});

describe('sessions: a logout', () => {
  test('ends the session, without grace', async () => {
    const first = await refresh();
    const out = await refresh(cookieIn(first), { logout: true });
    expect(out.body.identity_id).not.toBe(first.body.identity_id);
    expect(outcomeOf(await refresh(cookieIn(first)))).toBe('403 TOKEN_REVOKED');
  });

  test('at the same moment as a refresh ends the session of both', async () => {
    for (let repetition = 0; repetition < 20; repetition += 1) {
      const first = await refresh();
      const [refreshed] = await Promise.all([refresh(cookieIn(first)), refresh(cookieIn(first), { logout: true })]);
      if (refreshed.status !== 200) continue;
      expect(outcomeOf(await refresh(cookieIn(refreshed)))).toBe('403 TOKEN_REVOKED');
    }
  });

  test('with a cookie whose refresh was lost ends the next session too', async () => {
    const first = await refresh();
    const lost = await refresh(cookieIn(first));
    await refresh(cookieIn(first), { logout: true });
    for (const cookie of [cookieIn(first), cookieIn(lost)]) {
      expect(outcomeOf(await refresh(cookie))).toBe('403 TOKEN_REVOKED');
    }
  });
});
