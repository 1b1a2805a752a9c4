import type { JWK } from 'jose';
import { after, type Clock } from '../../platform/clock.ts';
import type { Database, Tx } from '../../platform/database/database.ts';
import { ServiceError } from '../../platform/errors.ts';
import type { Events } from '../../platform/events.ts';
import { startLoop } from '../../platform/loop.ts';
import type { CallerOf } from '../../platform/tokens/caller.ts';
import { LIFETIMES_MS, type Tokens } from '../../platform/tokens/tokens.ts';
import { readVersions } from '../../platform/watch/versions.ts';
import type { Watchable } from '../../platform/watch/views.ts';
import { type ContentProblem, refuseProblems } from '../names.ts';
import { topics } from '../topics.ts';
import { type ProfileChange, profileProblems } from './rules.ts';
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
const CLEAN_UP_EVERY_MS = 10 * 60_000;

export interface IdentitiesDependencies {
  database: Database;
  clock: Clock;
  events: Events;
  tokens: Tokens;
  /** Derives the successors of refresh tokens. A secret (HMAC). */
  refresh_key: JWK;
  /** Returns the groups that list an identity, as a member or otherwise. */
  groupsListing(tx: Tx, identity_id: string): Promise<string[]>;
  /** Returns which of the identities a group lists. */
  listedInGroups(tx: Tx, identity_ids: string[]): Promise<string[]>;
  /** Discards a picture that an identity no longer uses. */
  discardPicture(tx: Tx, upload_id: string): Promise<void>;
  /** Removes an identity from all groups; a group it owns goes to another member. */
  leaveGroups(identity_id: string): Promise<void>;
}

export type Identities = ReturnType<typeof createIdentities>;

/** Creates the use cases of identities: people, registered or guests. */
export function createIdentities(dependencies: IdentitiesDependencies) {
  const { database, clock, events, tokens, groupsListing, listedInGroups, discardPicture, leaveGroups } = dependencies;
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

  /** Returns the identity of a token; undefined if the token is unusable or the identity unknown. */
  async function findBearer(token: string): Promise<IdentityRow | undefined> {
    try {
      return await get((await tokens.verifyKind(token, ['identity'])).identity_id);
    } catch (error) {
      const code = error instanceof ServiceError ? error.code : undefined;
      if (code === 'TOKEN_ERROR' || code === 'IDENTITY_NOT_FOUND') return undefined;
      throw error;
    }
  }

  /** Changes an identity. Returns undefined if there is none. */
  async function change(tx: Tx, identity_id: string, values: Partial<IdentityRow>): Promise<IdentityRow | undefined> {
    await store.lockIdentity(tx, identity_id);
    return await store.updateIdentity(tx, identity_id, values, await groupsListing(tx, identity_id));
  }

  async function update(identity_id: string, values: Partial<IdentityRow>): Promise<void> {
    const updated = await database.transact((tx) => change(tx, identity_id, values));
    if (!updated) throw new ServiceError('IDENTITY_NOT_FOUND', {});
  }

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
    /** Returns how often an identity has changed. */
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
      const bearer = existing_identity_token === undefined ? undefined : await findBearer(existing_identity_token);
      // A short token from a browser session must not be exchanged for one that is valid for months.
      const has_session = bearer?.namespace_id === null;
      const lifetime_ms = has_session ? LIFETIMES_MS.identity : GUEST_TOKEN_LIFETIME_MS;
      // A guest may be removed concurrently; then a new one replaces it.
      const is_kept = bearer && (await keep(bearer.identity_id, lifetime_ms));
      const { identity_id } = is_kept ? bearer : await create(GUEST, namespace_id);
      if (!is_kept) await keep(identity_id, lifetime_ms);
      const token = await tokens.issue({ kind: 'identity', identity_id }, { lifetime_ms });
      return { identity_id, token, expire_ts: after(clock.now(), lifetime_ms) };
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
      refuseProblems(profileProblems(change));
      const { display_name, account_number, bio } = change;
      const given = Object.entries({ display_name, account_number, bio }).filter(([, value]) => value !== undefined);
      await update(identity_id, Object.fromEntries(given));
    },
    /** Makes an upload the identity's picture. Returns the replaced upload. Throws IDENTITY_NOT_FOUND. */
    async setAvatar(tx: Tx, identity_id: string, avatar_upload_id: string): Promise<string | null> {
      const before = await store.lockIdentity(tx, identity_id);
      const updated = await change(tx, identity_id, { avatar_upload_id });
      if (!before || !updated) throw new ServiceError('IDENTITY_NOT_FOUND', {});
      return before.avatar_upload_id;
    },
    /**
     * Schedules the deletion of an identity in 30 days; it can be cancelled. Throws API_FORBIDDEN for an administrator.
     */
    async requestDeletion(identity_id: string): Promise<void> {
      if ((await get(identity_id)).is_admin) {
        throw new ServiceError('API_FORBIDDEN', { reason: 'an administrator of this service cannot be deleted' });
      }
      await update(identity_id, { delete_ts: after(clock.now(), DELETE_AFTER_MS) });
    },
    /** Cancels a deletion that is not due yet. Throws IDENTITY_NOT_FOUND once it is due. */
    async cancelDeletion(identity_id: string): Promise<void> {
      const { delete_ts } = await get(identity_id);
      if (delete_ts !== null && delete_ts <= clock.now()) throw new ServiceError('IDENTITY_NOT_FOUND', {});
      await update(identity_id, { delete_ts: null });
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
        const kept = new Set([...(await listedInGroups(tx, due)), ...(await store.dropRefreshTokens(tx, due, now))]);
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
    /** Starts the loop that deletes identities whose deletion is due. Their ids stay, because other rows refer to them. */
    startForgetting: (signal: AbortSignal) =>
      startLoop({
        name: 'forget-identities',
        every_ms: CLEAN_UP_EVERY_MS,
        signal,
        events,
        async step() {
          const now = clock.now();
          const due = await store.selectToDelete(queries, now);
          const erased = {
            display_name: 'Deleted',
            bio: '',
            is_registered: false,
            is_admin: false,
            is_deleted: true,
            avatar_upload_id: null,
          };
          // The deletion may be cancelled until the identity is erased.
          const isDue = (row: IdentityRow | undefined) => row?.delete_ts != null && row.delete_ts <= now;
          const forget = async ({ identity_id }: IdentityRow) => {
            if (!isDue(await store.selectIdentity(queries, identity_id))) return;
            await leaveGroups(identity_id);
            const is_erased = await database.transact(async (tx) => {
              const before = await store.lockIdentity(tx, identity_id);
              if (!isDue(before)) return false;
              await change(tx, identity_id, erased);
              await store.revokeRefreshTokensOf(tx, identity_id, now);
              if (before?.avatar_upload_id) await discardPicture(tx, before.avatar_upload_id);
              return true;
            });
            if (!is_erased) return;
            // It may have joined a group in between. From now on, all groups refuse it.
            await leaveGroups(identity_id);
            events.emit({ event: 'identity_forgotten', identity_id });
          };
          // One that fails must not keep the others waiting; the loop logs it and repeats.
          const failures: unknown[] = [];
          for (const identity of due) await forget(identity).catch((failure: unknown) => failures.push(failure));
          if (failures.length > 0) throw failures[0];
          return 0;
        },
      }),
  };
}
