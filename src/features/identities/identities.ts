import type { JWK } from 'jose';
import { after, type Clock } from '../../platform/clock.ts';
import type { Database, Tx } from '../../platform/database/database.ts';
import { ServiceError } from '../../platform/errors.ts';
import type { Events } from '../../platform/events.ts';
import { startLoop } from '../../platform/loop.ts';
import type { Tokens } from '../../platform/tokens/tokens.ts';
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
const BATCH_MAX = 64;
/** Games keep the token of a guest, and have no cookie to renew it with. */
const GUEST_TOKEN_LIFETIME_MS = 180 * 24 * 3_600_000;
/** How long a guest is kept after the last token expired, and the time between checks of one that is still referred to. */
const GUESTS_KEPT_MS = 30 * 24 * 3_600_000;
/** Time to think it over. */
const DELETE_AFTER_MS = 30 * 24 * 3_600_000;
const GUEST = { display_name: 'Guest', is_registered: false, is_admin: false };
const CLEAN_UP_EVERY_MS = 10 * 60_000;

interface IdentitiesDependencies {
  database: Database;
  clock: Clock;
  events: Events;
  tokens: Tokens;
  /** A secret (HMAC): makes the successors of refresh tokens. */
  refresh_key: JWK;
  /** The groups that have somebody on one of their lists. */
  groupsShowing(tx: Tx, identity_id: string): Promise<string[]>;
  /** Those of the people that are on a list of a group. */
  listedInGroups(tx: Tx, identity_ids: string[]): Promise<string[]>;
  /** Ends the showing of a picture that a person no longer has. */
  discardPicture(tx: Tx, upload_id: string): Promise<void>;
  /** Takes a person out of all groups; those the person owns go to another. */
  leaveGroups(identity_id: string): Promise<void>;
}

export type Identities = ReturnType<typeof createIdentities>;

/** Who there is. */
export function createIdentities(dependencies: IdentitiesDependencies) {
  const { database, clock, events, tokens, groupsShowing, listedInGroups, discardPicture, leaveGroups } = dependencies;
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
      // Whatever issues the first token keeps the person longer.
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

  /** Keeps a person for as long as a token that is issued now. False when there is no such person. */
  const keep = (identity_id: string, lifetime_ms: number) =>
    store.keepIdentity(queries, identity_id, after(clock.now(), lifetime_ms + GUESTS_KEPT_MS));

  const sessions = createSessions({ ...dependencies, keep });

  /** The person whose identity token it is; undefined for an unusable token and for a person who is not known. */
  async function findBearer(token: string): Promise<IdentityRow | undefined> {
    try {
      return await get((await tokens.verifyKind(token, ['identity'])).identity_id);
    } catch (error) {
      const code = error instanceof ServiceError ? error.code : undefined;
      if (code === 'TOKEN_ERROR' || code === 'IDENTITY_NOT_FOUND') return undefined;
      throw error;
    }
  }

  /** Undefined when there is nobody. */
  async function change(tx: Tx, identity_id: string, values: Partial<IdentityRow>): Promise<IdentityRow | undefined> {
    await store.lockIdentity(tx, identity_id);
    return await store.updateIdentity(tx, identity_id, values, await groupsShowing(tx, identity_id));
  }

  async function update(identity_id: string, values: Partial<IdentityRow>): Promise<void> {
    const updated = await database.transact((tx) => change(tx, identity_id, values));
    if (!updated) throw new ServiceError('IDENTITY_NOT_FOUND', {});
  }

  /** Several people. Watchable. */
  const people: Watchable<string[], IdentityRow[]> = { topics: (ids) => ids.map(topics.identity), read: list };

  /** Those there are of up to 64. */
  async function list(identity_ids: string[]): Promise<IdentityRow[]> {
    if (identity_ids.length > BATCH_MAX) {
      const error = `expected at most ${BATCH_MAX} ids`;
      throw new ServiceError('API_BAD_QUERY_PARAMETER', { parameter: 'identity_ids', error });
    }
    const rows = await store.selectIdentities(queries, identity_ids);
    return rows.filter(({ is_deleted }) => !is_deleted);
  }

  return {
    sessions,
    create,
    people,
    list,
    /** How often somebody has changed. */
    async changesOf(identity_id: string): Promise<number> {
      const topic = topics.identity(identity_id);
      return (await readVersions(queries, [topic])).get(topic) ?? 0;
    },
    /** Somebody whom nobody knows. */
    createGuest: () => create(GUEST),
    /** Goes on as the identity of a token, or as a new guest of a namespace where the token is of no use or missing. */
    async setUp(namespace_id: string, existing_identity_token: string | undefined) {
      const lifetime_ms = GUEST_TOKEN_LIFETIME_MS;
      const bearer = existing_identity_token === undefined ? undefined : await findBearer(existing_identity_token);
      // A guest that is removed at this moment is replaced too.
      const is_kept = bearer && (await keep(bearer.identity_id, lifetime_ms));
      const { identity_id } = is_kept ? bearer : await create(GUEST, namespace_id);
      if (!is_kept) await keep(identity_id, lifetime_ms);
      const token = await tokens.issue({ kind: 'identity', identity_id }, { lifetime_ms });
      return { identity_id, token, expire_ts: after(clock.now(), lifetime_ms) };
    },
    /** Throws IDENTITY_NOT_FOUND. */
    get,
    /** For whoever makes a group show somebody: until his transaction ends, how he is shown does not change. */
    lock: store.lockIdentity,
    find: (identity_id: string) => store.selectIdentity(queries, identity_id),
    findAdministrator: () => store.selectAdministrator(queries),
    validateProfile: (change: ProfileChange): ContentProblem[] => profileProblems(change),
    /** Throws VALIDATION_ERROR. What the change does not name stays. */
    async updateProfile(identity_id: string, change: ProfileChange): Promise<void> {
      refuseProblems(profileProblems(change));
      const { display_name, account_number, bio } = change;
      const given = Object.entries({ display_name, account_number, bio }).filter(([, value]) => value !== undefined);
      await update(identity_id, Object.fromEntries(given));
    },
    /** Makes an upload a person's picture. Returns the one that it replaces. Throws IDENTITY_NOT_FOUND. */
    async setAvatar(tx: Tx, identity_id: string, avatar_upload_id: string): Promise<string | null> {
      const before = await store.lockIdentity(tx, identity_id);
      const updated = await change(tx, identity_id, { avatar_upload_id });
      if (!before || !updated) throw new ServiceError('IDENTITY_NOT_FOUND', {});
      return before.avatar_upload_id;
    },
    /** Has a person forgotten in 30 days, unless the wish is taken back. Throws API_FORBIDDEN for an administrator. */
    async requestDeletion(identity_id: string): Promise<void> {
      if ((await get(identity_id)).is_admin) {
        throw new ServiceError('API_FORBIDDEN', { reason: 'an administrator of this service cannot be deleted' });
      }
      await update(identity_id, { delete_ts: after(clock.now(), DELETE_AFTER_MS) });
    },
    cancelDeletion: (identity_id: string) => update(identity_id, { delete_ts: null }),
    /**
     * Removes some guests 30 days after their last token expired. A guest that a group lists, or that can still renew a
     * token, stays for 30 more days, then is checked again. Returns how many it checked; there may be more.
     */
    async forgetGuests(): Promise<number> {
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
    /** Deletes some refresh tokens that have expired. Returns how many; there may be more. */
    forgetRefreshTokens: () => store.deleteExpiredRefreshTokens(queries, clock.now()),
    /** Forgets the people who asked for it. Their ids stay, for what refers to them. */
    startForgetting: (signal: AbortSignal) =>
      startLoop({
        name: 'forget-identities',
        every_ms: CLEAN_UP_EVERY_MS,
        signal,
        events,
        async step() {
          const now = clock.now();
          const due = await store.selectToDelete(queries, now);
          const nobody = {
            display_name: 'Deleted',
            bio: '',
            is_registered: false,
            is_admin: false,
            is_deleted: true,
            avatar_upload_id: null,
          };
          for (const { identity_id } of due) {
            await leaveGroups(identity_id);
            await database.transact(async (tx) => {
              const before = await store.lockIdentity(tx, identity_id);
              await change(tx, identity_id, nobody);
              await store.revokeRefreshTokensOf(tx, identity_id, now);
              if (before?.avatar_upload_id) await discardPicture(tx, before.avatar_upload_id);
            });
            events.emit({ event: 'identity_forgotten', identity_id });
          }
          return 0;
        },
      }),
  };
}
