import type { JWK } from 'jose';
import { after, type Clock } from '../../platform/clock.ts';
import type { Database, Tx } from '../../platform/database/database.ts';
import { ServiceError } from '../../platform/errors.ts';
import type { Events } from '../../platform/events.ts';
import type { CallerOf } from '../../platform/tokens/caller.ts';
import { LIFETIMES_MS, type Tokens } from '../../platform/tokens/tokens.ts';
import { readVersions } from '../../platform/watch/versions.ts';
import type { Watchable } from '../../platform/watch/views.ts';
import { type ContentProblem, refuseProblems } from '../names.ts';
import { topics } from '../topics.ts';
import { startForgetting } from './forgetting.ts';
import { PROFILE_ADVICE, type ProfileChange, profileProblems } from './rules.ts';
import { createSessions } from './sessions.ts';
import * as store from './store.ts';
import type { IdentityRow } from './tables.ts';

export type { IdentityRow } from './tables.ts';

const ACCOUNT_NUMBERS = 10_000;
/** Games store the token of a guest; they have no cookie to renew it. */
const GUEST_TOKEN_LIFETIME_MS = 180 * 24 * 3_600_000;
/** Time a guest is kept after its last token expired, and between checks of a guest that is still referenced. */
const GUESTS_KEPT_MS = 30 * 24 * 3_600_000;
/** Time to cancel a deletion. */
const DELETE_AFTER_MS = 30 * 24 * 3_600_000;
const GUEST = { display_name: 'Guest', is_registered: false, is_admin: false };
/** Errors of a stored token with which a client gets a new guest. */
const UNUSABLE_CODES: ReadonlySet<string> = new Set([
  'TOKEN_INVALID',
  'CLAIMS_ENTITLEMENT_EXPIRED',
  'IDENTITY_NOT_FOUND',
]);

export interface IdentitiesDependencies {
  database: Database;
  clock: Clock;
  events: Events;
  tokens: Tokens;
  /** Derives the successors of refresh tokens. A secret (HMAC). */
  refresh_key: JWK;
  /** Returns the groups that list an identity, as a member or otherwise. */
  groupsThatList(tx: Tx, identity_id: string): Promise<string[]>;
  /** Returns which of the identities a group lists. */
  whichAreListed(tx: Tx, identity_ids: string[]): Promise<string[]>;
  /** Discards a picture that an identity no longer uses. */
  discardPicture(tx: Tx, upload_id: string): Promise<void>;
  /** Returns whether an identity is a member of any group, or asks to join one. */
  isMemberOrAsksToJoin(tx: Tx, identity_id: string): Promise<boolean>;
  /** Removes an identity from all groups; a group it owns goes to another member. */
  leaveGroups(identity_id: string): Promise<void>;
}

/** An identity that gets a token, and how long the token is valid. */
interface Bearer {
  identity_id: string;
  lifetime_ms: number;
}

export type Identities = ReturnType<typeof createIdentities>;

/** Creates the use cases of identities: people, registered or guests. */
export function createIdentities(dependencies: IdentitiesDependencies) {
  const { database, clock, tokens, groupsThatList, whichAreListed, discardPicture } = dependencies;
  const { queries } = database;

  async function create(
    identity: Pick<IdentityRow, 'display_name' | 'is_registered' | 'is_admin'>,
    namespace_id: string | null = null,
  ): Promise<IdentityRow> {
    const row: IdentityRow = {
      ...identity,
      identity_id: crypto.randomUUID(),
      account_number: Math.floor(Math.random() * ACCOUNT_NUMBERS),
      bio: '',
      create_ts: clock.now(),
      avatar_upload_id: null,
      namespace_id,
      // Issuing the first token extends this time.
      keep_until_ts: after(clock.now(), GUESTS_KEPT_MS),
      delete_ts: null,
      is_deleted: false,
    };
    await store.insertIdentity(queries, row);
    return row;
  }

  async function get(identity_id: string): Promise<IdentityRow> {
    const identity = await store.selectIdentity(queries, identity_id);
    if (!identity || identity.is_deleted) throw new ServiceError('IDENTITY_NOT_FOUND', {});
    return identity;
  }

  /** Keeps an identity until 30 days after a token issued now expires. Returns false if there is none. */
  const keep = (identity_id: string, lifetime_ms: number) =>
    store.keepIdentity(queries, identity_id, after(clock.now(), lifetime_ms + GUESTS_KEPT_MS));

  const sessions = createSessions({ ...dependencies, keep });

  /** Creates a guest of a namespace. */
  async function createBearer(namespace_id: string): Promise<Bearer> {
    const { identity_id } = await create(GUEST, namespace_id);
    const lifetime_ms = GUEST_TOKEN_LIFETIME_MS;
    await keep(identity_id, lifetime_ms);
    return { identity_id, lifetime_ms };
  }

  /**
   * Returns the identity of a token, for a token that replaces it; undefined if the token is unusable or the identity
   * unknown.
   */
  async function findBearer(token: string, now: Date): Promise<Bearer | undefined> {
    try {
      const { caller, expires_at } = await tokens.read(token);
      if (caller.kind !== 'identity') return undefined;
      const { identity_id, namespace_id } = await get(caller.identity_id);
      if (namespace_id !== null) return { identity_id, lifetime_ms: GUEST_TOKEN_LIFETIME_MS };
      // Only the session of a browser renews its short tokens, and it can be ended.
      const lifetime_ms = Math.min(LIFETIMES_MS.identity, expires_at - now.getTime());
      return lifetime_ms > 0 ? { identity_id, lifetime_ms } : undefined;
    } catch (error) {
      if (error instanceof ServiceError && UNUSABLE_CODES.has(error.code)) return undefined;
      throw error;
    }
  }

  /** Locks an identity and updates it to values that may depend on its row, which it returns. Throws IDENTITY_NOT_FOUND. */
  async function updateWith(
    tx: Tx,
    identity_id: string,
    valuesFor: (before: IdentityRow) => Partial<IdentityRow>,
  ): Promise<IdentityRow> {
    const before = await store.lockIdentity(tx, identity_id);
    if (before?.is_deleted !== false) throw new ServiceError('IDENTITY_NOT_FOUND', {});
    await store.updateIdentity(tx, identity_id, valuesFor(before), await groupsThatList(tx, identity_id));
    return before;
  }

  const update = (identity_id: string, valuesFor: (before: IdentityRow) => Partial<IdentityRow>) =>
    database.transact((tx) => updateWith(tx, identity_id, valuesFor));

  /** Several identities. Watchable. */
  const people: Watchable<string[], IdentityRow[]> = { topics: (ids) => ids.map(topics.identity), read: list };

  /** Returns those identities that exist and are not deleted. */
  async function list(identity_ids: string[]): Promise<IdentityRow[]> {
    const rows = await store.selectIdentities(queries, identity_ids);
    return rows.filter(({ is_deleted }) => !is_deleted);
  }

  return {
    sessions,
    create,
    people,
    list,
    /** Returns how many times an identity has changed. */
    async changesOf(identity_id: string): Promise<number> {
      const topic = topics.identity(identity_id);
      return (await readVersions(queries, [topic])).get(topic) ?? 0;
    },
    /** Creates a guest that belongs to no namespace. */
    createGuest: () => create(GUEST),
    /**
     * Continues as the identity of a token, or as a new guest of the namespace if the token is unusable or missing.
     */
    async setUp(namespace_id: string, existing_identity_token: string | undefined) {
      const now = clock.now();
      const bearer = existing_identity_token === undefined ? undefined : await findBearer(existing_identity_token, now);
      // A guest may be removed concurrently; then a new one replaces it.
      const is_kept = bearer && (await keep(bearer.identity_id, bearer.lifetime_ms));
      const { identity_id, lifetime_ms } = is_kept ? bearer : await createBearer(namespace_id);
      const stamp = { token_id: crypto.randomUUID(), at: now };
      const token = await tokens.issue({ kind: 'identity', identity_id }, { lifetime_ms, stamp });
      return { identity_id, token, expire_ts: after(now, lifetime_ms) };
    },
    /** Throws IDENTITY_NOT_FOUND. */
    get,
    /** Locks the profile of an identity until the transaction ends, for features that show it. */
    lock: store.lockIdentity,
    find: (identity_id: string) => store.selectIdentity(queries, identity_id),
    /** Throws IDENTITY_NOT_ADMIN unless the identity is an administrator. */
    async requireAdministrator({ identity_id }: CallerOf<'identity'>): Promise<void> {
      const identity = await store.selectIdentity(queries, identity_id);
      if (!identity?.is_admin) throw new ServiceError('IDENTITY_NOT_ADMIN', {});
    },
    findAdministrator: () => store.selectAdministrator(queries),
    validateProfile: (change: ProfileChange): ContentProblem[] => profileProblems(change),
    /** Changes the named members of a profile. Throws VALIDATION_ERROR. */
    async updateProfile(identity_id: string, change: ProfileChange): Promise<void> {
      refuseProblems(profileProblems(change), PROFILE_ADVICE);
      const { display_name, account_number, bio } = change;
      const given = Object.entries({ display_name, account_number, bio }).filter(([, value]) => value !== undefined);
      await update(identity_id, () => Object.fromEntries(given));
    },
    /** Makes an upload the identity's picture. Returns the replaced upload. Throws IDENTITY_NOT_FOUND. */
    async setAvatar(tx: Tx, identity_id: string, avatar_upload_id: string): Promise<string | null> {
      const before = await updateWith(tx, identity_id, () => ({ avatar_upload_id }));
      return before.avatar_upload_id;
    },
    /**
     * Schedules the deletion of an identity in 30 days, which can be cancelled until then. Repeating it postpones nothing.
     * Throws API_FORBIDDEN for an administrator.
     */
    async requestDeletion(identity_id: string): Promise<void> {
      await update(identity_id, ({ is_admin, delete_ts }) => {
        if (is_admin) {
          const reason = 'an administrator of this service cannot be deleted; send the token of the identity to delete';
          throw new ServiceError('API_FORBIDDEN', { reason });
        }
        return { delete_ts: delete_ts ?? after(clock.now(), DELETE_AFTER_MS) };
      });
    },
    /** Cancels a deletion that is not due yet. Throws IDENTITY_NOT_FOUND once it is due. */
    async cancelDeletion(identity_id: string): Promise<void> {
      await update(identity_id, ({ delete_ts }) => {
        if (delete_ts !== null && delete_ts <= clock.now()) throw new ServiceError('IDENTITY_NOT_FOUND', {});
        return { delete_ts: null };
      });
    },
    /**
     * Deletes a batch of guests 30 days after their last token expired. Keeps a guest that a group lists, or that has
     * a refresh token that has not expired, for 30 more days. Returns how many it checked; more may remain.
     */
    async deleteOldGuests(): Promise<number> {
      return await database.transact(async (tx) => {
        const now = clock.now();
        const due = await store.lockGuestsToRemove(tx, now);
        if (due.length === 0) return 0;
        const kept = new Set([...(await whichAreListed(tx, due)), ...(await store.dropRefreshTokens(tx, due, now))]);
        await store.postponeRemoval(tx, [...kept], after(now, GUESTS_KEPT_MS));
        const pictures = await store.deleteIdentities(
          tx,
          due.filter((identity_id) => !kept.has(identity_id)),
        );
        for (const upload_id of pictures) await discardPicture(tx, upload_id);
        return due.length;
      });
    },
    /** Deletes a batch of expired refresh tokens. Returns how many; more may remain. */
    deleteOldRefreshTokens: () => store.deleteExpiredRefreshTokens(queries, clock.now()),
    /** Starts the loop that deletes identities when the time of their deletion has come. */
    startForgetting: (signal: AbortSignal) =>
      startForgetting(
        { ...dependencies, update: async (tx, id, values) => void (await updateWith(tx, id, () => values)) },
        signal,
      ),
  };
}
