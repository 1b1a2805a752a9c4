import { createHash, randomBytes } from 'node:crypto';
import { after, type Clock } from '../../platform/clock.ts';
import type { Database } from '../../platform/database/database.ts';
import { assert, ServiceError } from '../../platform/errors.ts';
import type { CallerOf } from '../../platform/tokens/caller.ts';
import { isOfKind, type Tokens } from '../../platform/tokens/tokens.ts';
import type { Games } from '../games/games.ts';
import type { Identities } from '../identities/identities.ts';
import * as store from './store.ts';
import type { HubSecretRow } from './tables.ts';
import type { HubLink, HubToken } from './wire.ts';

/** How long a link can be used. */
const LINK_LIFETIME_MS = 60 * 60_000;
const SESSION_LIFETIME_MS = 7 * 24 * 60 * 60_000;
/** A page asks for the next token before this one expires. Logging out cannot revoke it. */
const TOKEN_LIFETIME_MS = 15 * 60_000;
const SECRET_BYTES = 24;

export interface HubDependencies {
  database: Database;
  clock: Clock;
  tokens: Tokens;
  identities: Identities;
  games: Games;
  public_url: string;
}

/** The bearer of a link, and of the session that it opens: a person, or a game by its cloud token. */
type Bearer = Pick<HubSecretRow, 'identity_id' | 'game_id' | 'issued_at'>;

interface LogIn {
  /** The secret of the session that the browser has. */
  replaced_secret: string | undefined;
  /** Whether the link may replace the session of another bearer. */
  replaces_session: boolean;
}

/** A session that has just begun. Only its browser knows the secret. */
export interface NewSession {
  secret: string;
  lifetime_ms: number;
}

export type Hub = ReturnType<typeof createHub>;

/**
 * Creates the sessions of the hub. A browser opens a link once and gets a session, whose secret is in a cookie that pages
 * cannot read; with it the hub gets tokens that are valid for minutes. No session outlives the token that its link was made
 * with, so a token cannot be exchanged for a longer one.
 */
export function createHub({ database, clock, tokens, identities, games, public_url }: HubDependencies) {
  const { queries } = database;

  /** Returns the caller of a bearer's next token. Throws the error with which the bearer's own token would be refused. */
  async function authorizeBearer(bearer: Bearer): Promise<{ caller: CallerOf<'identity' | 'cloud'>; at: Date }> {
    const { identity_id, game_id, issued_at } = bearer;
    if (identity_id !== null) {
      await identities.get(identity_id);
      return { caller: { kind: 'identity', identity_id }, at: clock.now() };
    }
    assert(game_id !== null && issued_at !== null, 'a session has an identity, or a game and its token');
    const { at } = await games.authorizeTokenIssue({ kind: 'cloud', game_id, issued_at: issued_at.getTime() }, game_id);
    return { caller: { kind: 'cloud', game_id }, at };
  }

  return {
    /**
     * Creates a link by which a browser logs in as the caller of a token. Throws if the caller is gone, or the token has
     * ended or was revoked.
     */
    async createLink(token: string): Promise<HubLink> {
      const { caller, expires_at } = await tokens.read(token);
      assert(isOfKind(caller, ['identity', 'cloud']), 'the token is of a kind that may log in');
      const now = clock.now();
      if (expires_at <= now.getTime()) throw new ServiceError('CLAIMS_ENTITLEMENT_EXPIRED', {});
      const secret = randomBytes(SECRET_BYTES).toString('base64url');
      const session_until_ts = new Date(expires_at);
      const expire_ts = earliest(after(now, LINK_LIFETIME_MS), session_until_ts);
      const bearer =
        caller.kind === 'identity'
          ? { identity_id: caller.identity_id, game_id: null, issued_at: null }
          : { identity_id: null, game_id: caller.game_id, issued_at: new Date(caller.issued_at ?? 0) };
      await authorizeBearer(bearer);
      await store.deleteExpired(queries, now);
      await store.insertSecret(queries, {
        secret_hash: hash(secret),
        is_link: true,
        ...bearer,
        expire_ts,
        session_until_ts,
      });
      return { url: `${public_url}/#login=${secret}`, expire_ts: expire_ts.toISOString() };
    },
    /**
     * Uses a link, and ends the session that the browser had. Throws HUB_LINK_INVALID, or HUB_OTHER_SESSION if that session
     * has another bearer and may not be replaced; the link stays valid then.
     */
    async logIn(code: string, { replaced_secret, replaces_session }: LogIn): Promise<NewSession> {
      const now = clock.now();
      const secret = randomBytes(SECRET_BYTES).toString('base64url');
      return await database.transact(async (tx) => {
        const link = await store.takeLink(tx, hash(code), now);
        if (!link) throw new ServiceError('HUB_LINK_INVALID', {});
        const replaced_hash = replaced_secret && hash(replaced_secret);
        const replaced_session = replaced_hash && (await store.selectSession(tx, replaced_hash, now));
        if (replaced_session && !replaces_session && !isSameBearer(replaced_session, link)) {
          throw new ServiceError('HUB_OTHER_SESSION', {});
        }
        const expire_ts = earliest(after(now, SESSION_LIFETIME_MS), link.session_until_ts);
        await store.insertSecret(tx, { ...link, secret_hash: hash(secret), is_link: false, expire_ts });
        if (replaced_hash) await store.deleteSession(tx, replaced_hash);
        return { secret, lifetime_ms: expire_ts.getTime() - now.getTime() };
      });
    },
    /** Returns a token for the bearer of a session. Throws HUB_NOT_LOGGED_IN. */
    async issueToken(secret: string): Promise<HubToken> {
      const row = await store.selectSession(queries, hash(secret), clock.now());
      if (!row) throw new ServiceError('HUB_NOT_LOGGED_IN', {});
      const { caller, at } = await authorizeBearer(row).catch((cause: unknown) => {
        if (!(cause instanceof ServiceError) || cause.status >= 500) throw cause;
        throw new ServiceError('HUB_NOT_LOGGED_IN', {}, { cause });
      });
      const expire_ts = earliest(after(at, TOKEN_LIFETIME_MS), row.expire_ts);
      const lifetime_ms = Math.max(0, expire_ts.getTime() - at.getTime());
      const token = await tokens.issue(caller, { lifetime_ms, stamp: { token_id: crypto.randomUUID(), at } });
      return { token, expire_ts: expire_ts.toISOString() };
    },
    /** Ends a session. */
    logOut: (secret: string) => store.deleteSession(queries, hash(secret)),
  };
}

function isSameBearer(one: Bearer, other: Bearer): boolean {
  return one.identity_id === other.identity_id && one.game_id === other.game_id;
}

function earliest(one: Date, other: Date): Date {
  return one < other ? one : other;
}

function hash(secret: string): string {
  return createHash('sha256').update(secret).digest('base64url');
}
