import { after, type Clock } from '../../platform/clock.ts';
import type { Database, Tx } from '../../platform/database/database.ts';
import { assert, ServiceError } from '../../platform/errors.ts';
import { makeCode, normalizeCode } from '../codes.ts';
import type { Identities } from '../identities/identities.ts';
import { refuseProblem } from '../names.ts';
import * as store from './members-store.ts';
import { lockGroup, MEMBERS_MAX, selectGroup, selectMemberIds } from './store.ts';
import type { CountedGroup, InviteRow } from './tables.ts';

/**
 * Join requests of a group. A guest costs nothing, and a join request keeps it from being deleted, so later requests
 * replace the oldest.
 */
const JOIN_REQUESTS_MAX = 1_000;
const JOIN_REQUESTS_KEPT_MS = 30 * 24 * 3_600_000;
const INVITE_LIFETIME_MAX_MS = 30 * 24 * 3_600_000;
const INVITE_USES_MAX = 5_000;
/** Invites of a group that can be used. */
const OPEN_INVITES_MAX = 256;
const CODE_LENGTH = 8;

interface MembershipDependencies {
  database: Database;
  clock: Clock;
  identities: Identities;
  /** Revokes the cloud and service tokens of the group's games when the transaction commits. */
  revokeTokensOf(tx: Tx, group_id: string): Promise<void>;
}

interface GroupAction {
  group_id: string;
  /** The identity that acts. */
  actor_id: string;
}

interface Change {
  group_id: string;
  identity_id: string;
  /** Whether only the list of join requests changes. Profiles and lists of games do not show it. */
  is_join_request?: boolean;
  /** If the identity is not on this list, nothing changes, so no watcher is woken. */
  list?: store.PeopleList;
  /** An identity that may become the owner. */
  successor?: string;
}

/** The row of the person, which is locked; undefined if there is no such identity. */
type Person = Awaited<ReturnType<Identities['lock']>>;
/** Changes a person's membership of a group. */
type Work = (tx: Tx, group: CountedGroup, person: Person) => Promise<void>;

interface MemberAction extends GroupAction {
  identity_id: string;
}

/**
 * Creates the use cases of membership. Each change locks the group, so that changes of one group run one after another.
 */
export function createMembership({ database, clock, identities, revokeTokensOf }: MembershipDependencies) {
  /** Runs a change of one person's membership of a group, and bumps all that shows it. */
  async function change(
    { group_id, identity_id, is_join_request = false, list, successor }: Change,
    work: Work,
  ): Promise<void> {
    await database.transact(async (tx) => {
      await lockGroup(tx, group_id);
      // A concurrent change of the profile either ran before this lock, or sees the new membership and announces it.
      const person = await identities.lock(tx, identity_id);
      const is_listed = list === undefined || (await store.isListed(tx, list, group_id, identity_id));
      if (is_listed) {
        // Each member's list of games shows the number of members and the owner.
        const members = is_join_request ? [] : await selectMemberIds(tx, group_id);
        await store.touchGroup(tx, group_id, {
          people: is_join_request ? [] : [identity_id, ...(successor ? [successor] : [])],
          members,
        });
      }
      const group = await selectGroup(tx, group_id);
      if (!group) throw new ServiceError('GROUP_NOT_FOUND', {});
      await work(tx, group, person);
    });
  }

  /** Runs a change that only the owner may make. */
  async function changeAsOwner(
    { group_id, actor_id, identity_id }: MemberAction,
    work: Work,
    list?: store.PeopleList,
  ): Promise<void> {
    await change({ group_id, identity_id, ...(list && { list }) }, async (tx, group, person) => {
      requireOwner(group, actor_id);
      await work(tx, group, person);
    });
  }

  /** Makes a person a member. Throws IDENTITY_NOT_FOUND, GROUP_MEMBER_BANNED, GROUP_FULL or GROUP_ALREADY_MEMBER. */
  async function admit(tx: Tx, { group_id, member_count }: CountedGroup, person: Person): Promise<void> {
    if (person?.is_deleted !== false) throw new ServiceError('IDENTITY_NOT_FOUND', {});
    const { identity_id } = person;
    if (await store.isListed(tx, 'bans', group_id, identity_id)) throw new ServiceError('GROUP_MEMBER_BANNED', {});
    if (member_count >= MEMBERS_MAX) throw new ServiceError('GROUP_FULL', { max: MEMBERS_MAX });
    if (!(await store.addPerson(tx, 'members', group_id, { identity_id, ts: clock.now() }))) {
      throw new ServiceError('GROUP_ALREADY_MEMBER', {}, { metadata: { group_id } });
    }
    await store.removePerson(tx, 'join_requests', group_id, identity_id);
  }

  async function removeUnlessOwner(tx: Tx, group: CountedGroup, identity_id: string): Promise<void> {
    if (identity_id === group.owner_identity_id) {
      throw new ServiceError('API_FORBIDDEN', {
        reason: 'transfer the ownership of the group before its owner leaves',
      });
    }
    await removeMember(tx, group.group_id, identity_id);
  }

  /** Removes a member. Revokes the tokens of the group's games and ends its invites, because the member may know some. */
  async function removeMember(tx: Tx, group_id: string, identity_id: string): Promise<void> {
    if (!(await store.removePerson(tx, 'members', group_id, identity_id))) {
      throw new ServiceError('GROUP_NOT_MEMBER', {});
    }
    await revokeTokensOf(tx, group_id);
    await store.deleteInvites(tx, group_id);
  }

  /** Removes a deleted identity from a group. A group that it owned goes to its longest member, or else to `successor`. */
  async function removeDeleted(tx: Tx, group: CountedGroup, identity_id: string, successor: string | undefined) {
    const { group_id } = group;
    // Another process may have removed it.
    if (!(await store.isListed(tx, 'members', group_id, identity_id))) return;
    if (group.owner_identity_id === identity_id) {
      const next = (await selectMemberIds(tx, group_id)).find((member) => member !== identity_id) ?? successor;
      assert(next !== undefined, 'the service has an administrator, which is never deleted');
      await store.addPerson(tx, 'members', group_id, { identity_id: next, ts: clock.now() });
      // The administrator may have asked to join, or be banned.
      await store.removePerson(tx, 'join_requests', group_id, next);
      await store.removePerson(tx, 'bans', group_id, next);
      await store.setOwner(tx, group_id, next);
    }
    await removeMember(tx, group_id, identity_id);
  }

  /** Runs work for each group that has an identity on a list. */
  async function forEachGroup(
    list: store.PeopleList,
    identity_id: string,
    work: (group_id: string) => Promise<void>,
  ): Promise<void> {
    let last: string | undefined;
    for (;;) {
      const group_ids = await store.selectGroupIdsListing(database.queries, list, identity_id, last);
      if (group_ids.length === 0) return;
      for (const group_id of group_ids) await work(group_id);
      last = group_ids.at(-1);
    }
  }

  /**
   * Returns the group of an invite that can be used. Throws GROUP_INVITE_CODE_INVALID, GROUP_INVITE_CODE_ALREADY_USED or
   * GROUP_INVITE_CODE_EXPIRED.
   */
  async function groupOfInvite(typed: string): Promise<string> {
    return requireOpen(await store.selectInvite(database.queries, normalizeCode(typed)), clock.now()).group_id;
  }

  return {
    /** Removes an identity that is being deleted from all groups, with its join requests. Repeating it is harmless. */
    async leaveAll(identity_id: string): Promise<void> {
      const administrator = await identities.findAdministrator();
      const successor = administrator?.identity_id === identity_id ? undefined : administrator?.identity_id;
      await forEachGroup('join_requests', identity_id, (group_id) =>
        change({ group_id, identity_id, is_join_request: true, list: 'join_requests' }, async (tx) => {
          await store.removePerson(tx, 'join_requests', group_id, identity_id);
        }),
      );
      await forEachGroup('members', identity_id, (group_id) =>
        change({ group_id, identity_id, list: 'members', ...(successor && { successor }) }, (tx, group) =>
          removeDeleted(tx, group, identity_id, successor),
        ),
      );
    },
    leave: ({ group_id, actor_id }: GroupAction) =>
      change({ group_id, identity_id: actor_id }, (tx, group) => removeUnlessOwner(tx, group, actor_id)),
    kick: (act: MemberAction) => changeAsOwner(act, (tx, group) => removeUnlessOwner(tx, group, act.identity_id)),
    /**
     * Bans a person: ends the membership and the join request, and refuses new ones. Repeating it is harmless. Throws
     * IDENTITY_NOT_FOUND.
     */
    async ban(act: MemberAction) {
      const { group_id, identity_id } = act;
      await changeAsOwner(act, async (tx, group, person) => {
        if (person?.is_deleted !== false) throw new ServiceError('IDENTITY_NOT_FOUND', {});
        if (await store.isListed(tx, 'members', group_id, identity_id)) await removeUnlessOwner(tx, group, identity_id);
        await store.removePerson(tx, 'join_requests', group_id, identity_id);
        await store.addPerson(tx, 'bans', group_id, { identity_id, ts: clock.now() });
      });
    },
    unban: (act: MemberAction) =>
      changeAsOwner(
        act,
        async (tx) => {
          await store.removePerson(tx, 'bans', act.group_id, act.identity_id);
        },
        'bans',
      ),
    transfer: (act: MemberAction) =>
      changeAsOwner(act, async (tx) => {
        const { group_id, identity_id } = act;
        if (!(await store.isListed(tx, 'members', group_id, identity_id)))
          throw new ServiceError('GROUP_NOT_MEMBER', {});
        await store.setOwner(tx, group_id, identity_id);
      }),
    /**
     * Throws IDENTITY_NOT_FOUND, GROUP_CANNOT_REQUEST_JOIN, GROUP_MEMBER_BANNED, GROUP_ALREADY_MEMBER or
     * GROUP_JOIN_REQUEST_ALREADY_EXISTS.
     */
    requestJoin: ({ group_id, actor_id }: GroupAction) =>
      change({ group_id, identity_id: actor_id, is_join_request: true }, async (tx, group, person) => {
        if (person?.is_deleted !== false) throw new ServiceError('IDENTITY_NOT_FOUND', {});
        if (group.publicity !== 'open') throw new ServiceError('GROUP_CANNOT_REQUEST_JOIN', {});
        if (await store.isListed(tx, 'bans', group_id, actor_id)) throw new ServiceError('GROUP_MEMBER_BANNED', {});
        if (await store.isListed(tx, 'members', group_id, actor_id)) {
          throw new ServiceError('GROUP_ALREADY_MEMBER', {}, { metadata: { group_id } });
        }
        if (!(await store.addPerson(tx, 'join_requests', group_id, { identity_id: actor_id, ts: clock.now() }))) {
          throw new ServiceError('GROUP_JOIN_REQUEST_ALREADY_EXISTS', {});
        }
        await store.keepNewestRequests(tx, group_id, JOIN_REQUESTS_MAX);
      }),
    /** Deletes a batch of join requests that are 30 days old. Returns how many; more may remain. */
    async deleteOldJoinRequests(): Promise<number> {
      const before = after(clock.now(), -JOIN_REQUESTS_KEPT_MS);
      const group_id = await store.selectGroupOfOldRequest(database.queries, before);
      if (group_id === undefined) return 0;
      return await database.transact(async (tx) => {
        await lockGroup(tx, group_id);
        await store.touchGroup(tx, group_id, { people: [], members: [] });
        return await store.deleteOldRequests(tx, group_id, before);
      });
    },
    /** Deletes a join request, and admits the person if it is accepted. Does nothing if there is no request. */
    resolveJoin: (act: MemberAction, is_accepted: boolean) =>
      changeAsOwner(
        act,
        async (tx, group, person) => {
          const is_waiting = await store.removePerson(tx, 'join_requests', act.group_id, act.identity_id);
          if (is_waiting && is_accepted) await admit(tx, group, person);
        },
        'join_requests',
      ),
    /**
     * Creates an invite code, for members. Times are in milliseconds. Throws VALIDATION_ERROR, GROUP_NOT_MEMBER or
     * GROUP_TOO_MANY_INVITES.
     */
    async createInvite(
      { group_id, actor_id }: GroupAction,
      { ttl, use_count }: { ttl?: number | undefined; use_count?: number | undefined },
    ): Promise<string> {
      if (!isWithin(ttl, INVITE_LIFETIME_MAX_MS)) {
        refuseProblem(['ttl', 'invalid'], `1 to ${INVITE_LIFETIME_MAX_MS} milliseconds`);
      }
      if (!isWithin(use_count, INVITE_USES_MAX)) refuseProblem(['use_count', 'invalid'], `1 to ${INVITE_USES_MAX}`);
      const now = clock.now();
      const code = makeCode(CODE_LENGTH);
      await database.transact(async (tx) => {
        await lockGroup(tx, group_id);
        if (!(await store.isListed(tx, 'members', group_id, actor_id))) throw new ServiceError('GROUP_NOT_MEMBER', {});
        if ((await store.countOpenInvites(tx, group_id, now)) >= OPEN_INVITES_MAX) {
          throw new ServiceError('GROUP_TOO_MANY_INVITES', { max: OPEN_INVITES_MAX });
        }
        await store.insertInvite(tx, {
          code,
          group_id,
          create_ts: now,
          expire_ts: ttl === undefined ? null : after(now, ttl),
          uses_left: use_count ?? null,
        });
      });
      return code;
    },
    groupOfInvite,
    /** Admits a person by an invite code and returns the group. A use that admits no one does not count. */
    async consumeInvite(typed: string, identity_id: string): Promise<string> {
      const code = normalizeCode(typed);
      const group_id = await groupOfInvite(code);
      await change({ group_id, identity_id }, async (tx, group, person) => {
        const now = clock.now();
        // No other use runs until the transaction ends, because it has locked the group.
        requireOpen(await store.selectInvite(tx, code), now);
        await store.useInvite(tx, code, now);
        await admit(tx, group, person);
      });
      return group_id;
    },
  };
}

/** Returns an invite if it can be used, and throws why it cannot. */
function requireOpen(invite: InviteRow | undefined, now: Date): InviteRow {
  if (!invite) throw new ServiceError('GROUP_INVITE_CODE_INVALID', {});
  // Its last use has also set the time of its end.
  if (invite.uses_left === 0) throw new ServiceError('GROUP_INVITE_CODE_ALREADY_USED', {});
  if (invite.expire_ts && invite.expire_ts <= now) throw new ServiceError('GROUP_INVITE_CODE_EXPIRED', {});
  return invite;
}

/** Throws GROUP_INSUFFICIENT_PERMISSIONS unless the identity is the owner. */
export function requireOwner(group: CountedGroup, identity_id: string): void {
  if (group.owner_identity_id !== identity_id) throw new ServiceError('GROUP_INSUFFICIENT_PERMISSIONS', {});
}

function isWithin(value: number | undefined, max: number): boolean {
  return value === undefined || (Number.isInteger(value) && value > 0 && value <= max);
}
