import { after, type Clock } from '../../platform/clock.ts';
import type { Database, Tx } from '../../platform/database/database.ts';
import { ServiceError } from '../../platform/errors.ts';
import type { Events } from '../../platform/events.ts';
import { startLoop } from '../../platform/loop.ts';
import { LIFETIMES_MS, type Tokens } from '../../platform/tokens/tokens.ts';
import type { Watchable } from '../../platform/watch/sights.ts';
import { readVersions } from '../../platform/watch/versions.ts';
import { type ContentProblem, refuseProblems } from '../names.ts';
import { topics } from '../topics.ts';
import { type ProfileChange, profileProblems } from './rules.ts';
import { createSessions } from './sessions.ts';
import * as store from './store.ts';
import type { IdentityRow } from './tables.ts';

export type { IdentityRow } from './tables.ts';

const ACCOUNT_NUMBERS = 10_000;
const BATCH_MAX = 64;
/** Time to think it over. */
const DELETE_AFTER_MS = 30 * 24 * 3_600_000;
const GUEST = { display_name: 'Guest', is_registered: false, is_admin: false };
const CLEAN_UP_EVERY_MS = 10 * 60_000;

interface IdentitiesDependencies {
  database: Database;
  clock: Clock;
  events: Events;
  tokens: Tokens;
  /** The groups that have somebody on one of their lists. */
  groupsShowing(tx: Tx, identity_id: string): Promise<string[]>;
}

export type Identities = ReturnType<typeof createIdentities>;

/** Who there is. */
export function createIdentities(dependencies: IdentitiesDependencies) {
  const { database, clock, events, tokens, groupsShowing } = dependencies;
  const { queries } = database;
  const sessions = createSessions(dependencies);

  async function create(
    identity: Pick<IdentityRow, 'display_name' | 'is_registered' | 'is_admin'>,
  ): Promise<IdentityRow> {
    const row: IdentityRow = {
      ...identity,
      identity_id: crypto.randomUUID(),
      account_number: Math.floor(Math.random() * ACCOUNT_NUMBERS),
      bio: '',
      create_ts: clock.now(),
      avatar_upload_id: null,
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
    /** Goes on as the identity of a token, or as a new guest. Throws TOKEN_ERROR or IDENTITY_NOT_FOUND. */
    async setUp(existing_identity_token: string | undefined) {
      const existing =
        existing_identity_token === undefined
          ? undefined
          : await get((await tokens.verifyKind(existing_identity_token, ['identity'])).identity_id);
      const { identity_id } = existing ?? (await create(GUEST));
      const token = await tokens.issue({ kind: 'identity', identity_id });
      return { identity_id, token, expire_ts: after(clock.now(), LIFETIMES_MS.identity) };
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
    /** Makes an upload somebody's picture. */
    setAvatar: (identity_id: string, avatar_upload_id: string) => update(identity_id, { avatar_upload_id }),
    /** He is forgotten in 30 days, unless he changes his mind. */
    requestDeletion: (identity_id: string) => update(identity_id, { delete_ts: after(clock.now(), DELETE_AFTER_MS) }),
    cancelDeletion: (identity_id: string) => update(identity_id, { delete_ts: null }),
    /** Forgets those who asked for it. Their ids stay, for what refers to them. */
    startForgetting: (signal: AbortSignal) =>
      startLoop({
        name: 'forget-identities',
        every_ms: CLEAN_UP_EVERY_MS,
        signal,
        events,
        async step() {
          const now = clock.now();
          await store.deleteExpiredRefreshTokens(queries, now);
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
            await database.transact(async (tx) => {
              await change(tx, identity_id, nobody);
              await store.revokeRefreshTokensOf(tx, identity_id, now);
            });
            events.emit({ event: 'identity_forgotten', identity_id });
          }
          return 0;
        },
      }),
  };
}
