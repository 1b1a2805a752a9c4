import { after, type Clock } from '../../platform/clock.ts';
import type { Database, Tx } from '../../platform/database/database.ts';
import { assert, ServiceError } from '../../platform/errors.ts';
import type { Identities } from '../identities/identities.ts';
import * as store from './members-store.ts';
import { createMembershipChanges, type Work } from './membership-changes.ts';
import { lockGroup, selectMemberIds } from './store.ts';
import type { CountedGroup } from './tables.ts';

/**
 * Join requests that a group keeps; a new one replaces the oldest. Without a limit, they would keep any number of guests
 * from being deleted.
 */
const JOIN_REQUESTS_MAX = 1_000;
const JOIN_REQUESTS_KEPT_MS = 30 * 24 * 3_600_000;

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

interface MemberAction extends GroupAction {
  identity_id: string;
}

/** Creates the use cases of membership, other than invites. */
export function createMembership(dependencies: MembershipDependencies) {
  const { database, clock, identities, revokeTokensOf } = dependencies;
  const { change, addMember } = createMembershipChanges(dependencies);

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
    if (!(await store.removePerson(tx, 'members', { group_id, identity_id }))) {
      throw new ServiceError('GROUP_NOT_MEMBER', {});
    }
    await revokeTokensOf(tx, group_id);
    await store.deleteInvites(tx, group_id);
  }

  /** Removes a deleted identity from a group. A group that it owned goes to its longest member, or else to `successor`. */
  async function removeDeleted(tx: Tx, group: CountedGroup, identity_id: string, successor: string | undefined) {
    const { group_id } = group;
    // Another process may have removed it.
    if (!(await store.isListed(tx, 'members', { group_id, identity_id }))) return;
    if (group.owner_identity_id === identity_id) {
      const next = (await selectMemberIds(tx, group_id)).find((member) => member !== identity_id) ?? successor;
      assert(next !== undefined, 'the service has an administrator, which is never deleted');
      await store.addPerson(tx, 'members', group_id, { identity_id: next, ts: clock.now() });
      // The administrator may have asked to join, or be banned.
      await store.removePerson(tx, 'join_requests', { group_id, identity_id: next });
      await store.removePerson(tx, 'bans', { group_id, identity_id: next });
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

  return {
    /** Removes an identity that is being deleted from all groups, with its join requests. Repeating it is harmless. */
    async leaveAll(identity_id: string): Promise<void> {
      const administrator = await identities.findAdministrator();
      const successor = administrator?.identity_id === identity_id ? undefined : administrator?.identity_id;
      await forEachGroup('join_requests', identity_id, (group_id) =>
        change({ group_id, identity_id, is_join_request: true, list: 'join_requests' }, async (tx) => {
          await store.removePerson(tx, 'join_requests', { group_id, identity_id });
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
        if (await store.isListed(tx, 'members', { group_id, identity_id }))
          await removeUnlessOwner(tx, group, identity_id);
        await store.removePerson(tx, 'join_requests', { group_id, identity_id });
        await store.addPerson(tx, 'bans', group_id, { identity_id, ts: clock.now() });
      });
    },
    unban: (act: MemberAction) =>
      changeAsOwner(
        act,
        async (tx) => {
          await store.removePerson(tx, 'bans', act);
        },
        'bans',
      ),
    transfer: (act: MemberAction) =>
      changeAsOwner(act, async (tx) => {
        const { group_id, identity_id } = act;
        if (!(await store.isListed(tx, 'members', { group_id, identity_id })))
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
        if (await store.isListed(tx, 'bans', { group_id, identity_id: actor_id }))
          throw new ServiceError('GROUP_MEMBER_BANNED', {});
        if (await store.isListed(tx, 'members', { group_id, identity_id: actor_id })) {
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
          const is_waiting = await store.removePerson(tx, 'join_requests', act);
          if (is_waiting && is_accepted) await addMember(tx, group, person);
        },
        'join_requests',
      ),
  };
}

/** Throws GROUP_INSUFFICIENT_PERMISSIONS unless the identity is the owner. */
export function requireOwner(group: CountedGroup, identity_id: string): void {
  if (group.owner_identity_id !== identity_id) throw new ServiceError('GROUP_INSUFFICIENT_PERMISSIONS', {});
}
