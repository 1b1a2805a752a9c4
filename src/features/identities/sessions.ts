import { createHash, randomBytes } from 'node:crypto';
import { after, type Clock } from '../../platform/clock.ts';
import type { Database } from '../../platform/database/database.ts';
import { ServiceError } from '../../platform/errors.ts';
import { LIFETIMES_MS, type Tokens } from '../../platform/tokens/tokens.ts';
import * as store from './store.ts';

/** The field's (field-behaviour 1.3). */
export const REFRESH_LIFETIME_MS = 90 * 24 * 3_600_000;
const REFRESH_BYTES = 32;
const LABEL = 'usr_rf.';

/** A person's access: a token for some minutes, and one with which to get the next. */
export interface Session {
  identity_id: string;
  token: string;
  expire_ts: Date;
  refresh_token: string;
}

interface SessionsDependencies {
  database: Database;
  clock: Clock;
  tokens: Tokens;
}

/** How browsers stay logged in (field-behaviour 1.6). A refresh token is good once; in the database lies its hash. */
export function createSessions({ database, clock, tokens }: SessionsDependencies) {
  const { queries } = database;

  async function open(identity_id: string): Promise<Session> {
    const refresh_token = `${LABEL}${randomBytes(REFRESH_BYTES).toString('base64url')}`;
    const now = clock.now();
    await store.insertRefreshToken(queries, {
      token_hash: hash(refresh_token),
      identity_id,
      expire_ts: after(now, REFRESH_LIFETIME_MS),
      revoke_ts: null,
    });
    const token = await tokens.issue({ kind: 'identity', identity_id });
    return { identity_id, token, expire_ts: after(now, LIFETIMES_MS.identity), refresh_token };
  }

  return {
    open,
    /** The next session. Undefined when the token is none or has expired. Throws TOKEN_REFRESH_NOT_FOUND, TOKEN_REVOKED. */
    async refresh(refresh_token: string): Promise<Session | undefined> {
      if (!refresh_token.startsWith(LABEL)) return undefined;
      const token_hash = hash(refresh_token);
      const row = await store.selectRefreshToken(queries, token_hash);
      if (!row) throw new ServiceError('TOKEN_REFRESH_NOT_FOUND', {});
      if (row.expire_ts <= clock.now()) return undefined;
      const identity = await store.selectIdentity(queries, row.identity_id);
      const is_ours = await store.revokeRefreshToken(queries, token_hash, clock.now());
      if (!is_ours || identity?.is_deleted !== false) throw new ServiceError('TOKEN_REVOKED', {});
      return await open(row.identity_id);
    },
    /** Ends what a refresh token could still begin. */
    async end(refresh_token: string): Promise<void> {
      await store.revokeRefreshToken(queries, hash(refresh_token), clock.now());
    },
  };
}

function hash(refresh_token: string): string {
  return createHash('sha256').update(refresh_token).digest('base64url');
}
