import { createHash, createHmac, randomBytes } from 'node:crypto';
import type { JWK } from 'jose';
import { after, type Clock } from '../../platform/clock.ts';
import type { Database, Queries, Tx } from '../../platform/database/database.ts';
import { ServiceError } from '../../platform/errors.ts';
import { LIFETIMES_MS, type Tokens } from '../../platform/tokens/tokens.ts';
import * as store from './store.ts';
import type { RefreshTokenRow } from './tables.ts';

/** The lifetime of the reference API. */
export const REFRESH_LIFETIME_MS = 90 * 24 * 3_600_000;
/** Time in which a replaced refresh token still returns its successor, because that answer may have been lost. */
const GRACE_MS = 30_000;
const REFRESH_BYTES = 32;
const LABEL = 'usr_rf.';

/** A token that is valid for some minutes, and a refresh token to renew it. */
export interface Session {
  identity_id: string;
  token: string;
  expire_ts: Date;
  refresh_token: string;
}

type NewRefreshToken = Pick<Session, 'identity_id' | 'refresh_token'>;

interface SessionsDependencies {
  database: Database;
  clock: Clock;
  tokens: Tokens;
  /** Derives the successor of a refresh token. A secret (HMAC). */
  refresh_key: JWK;
  /** Keeps an identity until 30 days after a token issued now expires. Returns false if there is none. */
  keep(identity_id: string, lifetime_ms: number): Promise<boolean>;
}

/**
 * Creates the sessions of browsers. Each use replaces a refresh token by one derived from it and a secret key, so a
 * client that repeats a request within 30 s gets the same token. The database stores hashes.
 */
export function createSessions({ database, clock, tokens, refresh_key, keep }: SessionsDependencies) {
  const { queries } = database;
  const secret = Buffer.from(refresh_key.k ?? '', 'base64url');

  const successorOf = (refresh_token: string) =>
    `${LABEL}${createHmac('sha256', secret).update(refresh_token).digest('base64url')}`;

  async function insert(on: Queries, { identity_id, refresh_token }: NewRefreshToken): Promise<void> {
    await store.insertRefreshToken(on, {
      token_hash: hash(refresh_token),
      identity_id,
      expire_ts: after(clock.now(), REFRESH_LIFETIME_MS),
      revoke_ts: null,
      is_replaced: false,
    });
  }

  async function issue({ identity_id, refresh_token }: NewRefreshToken): Promise<Session> {
    await keep(identity_id, REFRESH_LIFETIME_MS);
    const token = await tokens.issue({ kind: 'identity', identity_id });
    return { identity_id, token, expire_ts: after(clock.now(), LIFETIMES_MS.identity), refresh_token };
  }

  /** Returns whether a replaced token may still return its successor: in time, and while the successor is unused. */
  async function isInGrace(tx: Tx, { is_replaced, revoke_ts }: RefreshTokenRow, successor: string): Promise<boolean> {
    if (!is_replaced || !revoke_ts || clock.now() > after(revoke_ts, GRACE_MS)) return false;
    return (await store.lockRefreshToken(tx, hash(successor)))?.revoke_ts === null;
  }

  return {
    async open(identity_id: string): Promise<Session> {
      const refresh_token = `${LABEL}${randomBytes(REFRESH_BYTES).toString('base64url')}`;
      await insert(queries, { identity_id, refresh_token });
      return await issue({ identity_id, refresh_token });
    },
    /**
     * Returns the next session; undefined if the token is unreadable or has expired. Throws TOKEN_REFRESH_NOT_FOUND or
     * TOKEN_REVOKED.
     */
    async refresh(refresh_token: string): Promise<Session | undefined> {
      if (!refresh_token.startsWith(LABEL)) return undefined;
      const successor = successorOf(refresh_token);
      const identity_id = await database.transact(async (tx) => {
        const row = await store.lockRefreshToken(tx, hash(refresh_token));
        if (!row) throw new ServiceError('TOKEN_REFRESH_NOT_FOUND', {});
        if (row.expire_ts <= clock.now()) return undefined;
        const identity = await store.selectIdentity(tx, row.identity_id);
        if (identity?.is_deleted !== false) throw new ServiceError('TOKEN_REVOKED', {});
        if (row.revoke_ts === null) {
          await store.replaceRefreshToken(tx, row.token_hash, clock.now());
          await insert(tx, { identity_id: row.identity_id, refresh_token: successor });
        } else if (!(await isInGrace(tx, row, successor))) throw new ServiceError('TOKEN_REVOKED', {});
        return row.identity_id;
      });
      return identity_id === undefined ? undefined : await issue({ identity_id, refresh_token: successor });
    },
    /** Ends a session: revokes the token, and its successor in case the answer with it was lost. */
    async end(refresh_token: string): Promise<void> {
      const hashes = [refresh_token, successorOf(refresh_token)].map(hash);
      await database.transact(async (tx) => {
        // A refresh at the same moment has inserted the successor by then.
        await store.lockRefreshToken(tx, hash(refresh_token));
        await store.revokeRefreshTokens(tx, hashes, clock.now());
      });
    },
  };
}

function hash(refresh_token: string): string {
  return createHash('sha256').update(refresh_token).digest('base64url');
}
