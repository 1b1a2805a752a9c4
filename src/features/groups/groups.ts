import { after, type Clock } from '../../platform/clock.ts';
import type { Database, Tx } from '../../platform/database/database.ts';
import { ServiceError } from '../../platform/errors.ts';
import type { CallerOf } from '../../platform/tokens/caller.ts';
import type { Watchable } from '../../platform/watch/views.ts';
import type { Identities } from '../identities/identities.ts';
import { type ContentProblem, DISPLAY_NAME_BYTES_MAX, displayNameProblem, refuseProblems } from '../names.ts';
import { topics } from '../topics.ts';
import { createInvites } from './invites.ts';
import {
  isListed,
  type Listed,
  type PeopleList,
  type PersonOfGroup,
  selectPeople,
  touchGroup,
} from './members-store.ts';
import { createMembership, requireOwner } from './membership.ts';
import { type GroupChange, groupProblems, readAnchor, writeAnchor } from './rules.ts';
import * as store from './store.ts';
import type { CountedGroup, GroupRow } from './tables.ts';
import { type GroupProfile, type PeoplePage, toGroupHandle, toGroupProfile, toPerson } from './wire.ts';

export type { CountedGroup } from './tables.ts';

/** How long an expired or used-up invite is kept, so that its code gets a precise error. */
const INVITES_KEPT_MS = 30 * 24 * 3_600_000;
const PAGE_DEFAULT = 32;
const PAGE_MAX = 64;

export type Groups = ReturnType<typeof createGroups>;

interface GroupsSettings {
  public_url: string;
}

export interface GroupsDependencies extends GroupsSettings {
  database: Database;
  clock: Clock;
  identities: Identities;
  /** Revokes the cloud and service tokens of the group's games when the transaction commits. */
  revokeTokensOf(tx: Tx, group_id: string): Promise<void>;
}

/** A group and the identity that views it. */
interface GroupViewer {
  group_id: string;
  identity_id: string;
}

interface PeopleQuery extends GroupViewer {
  list: PeopleList;
  anchor?: string | undefined;
  count?: number | undefined;
}

/** Creates the use cases of groups: teams of people that own games. */
export function createGroups(dependencies: GroupsDependencies) {
  const { database, clock, identities, public_url } = dependencies;
  const { queries } = database;

  async function get(group_id: string): Promise<CountedGroup> {
    const group = await store.selectGroup(queries, group_id);
    if (!group) throw new ServiceError('GROUP_NOT_FOUND', {});
    return group;
  }

  async function lockMembers(tx: Tx, group_id: string): Promise<string[]> {
    await store.lockGroup(tx, group_id);
    return await store.selectMemberIds(tx, group_id);
  }

  const membership = createMembership(dependencies);
  const isMember = (person: PersonOfGroup) => isListed(queries, 'members', person);

  /** Returns the public profiles of listed people, without deleted identities. */
  async function describePeople(listed: Listed[]): Promise<PeoplePage['people']> {
    const found = await identities.list(listed.map(({ identity_id }) => identity_id));
    const by_id = new Map(found.map((identity) => [identity.identity_id, identity]));
    return listed.flatMap(({ identity_id, ts }) => {
      const identity = by_id.get(identity_id);
      return identity ? [toPerson(identity, ts, public_url)] : [];
    });
  }

  /** Shows a closed group's members only to its members, and its join requests and bans only to its owner. */
  async function requireListAccess(group: CountedGroup, { list, identity_id }: PeopleQuery): Promise<void> {
    if (list !== 'members') return requireOwner(group, identity_id);
    if (group.publicity === 'open' || (await isMember({ group_id: group.group_id, identity_id }))) return;
    throw new ServiceError('GROUP_NOT_MEMBER', {});
  }

  /** A page of one of a group's lists. Watchable. */
  const people: Watchable<PeopleQuery, PeoplePage> = {
    topics: ({ group_id }) => [topics.group(group_id)],
    async read(query) {
      const group = await get(query.group_id);
      await requireListAccess(group, query);
      const limit = Math.min(query.count ?? PAGE_DEFAULT, PAGE_MAX);
      const last_of_previous_page = query.anchor === undefined ? undefined : readAnchor(query.anchor);
      const listed = await selectPeople(queries, query.list, group.group_id, { after: last_of_previous_page, limit });
      const last_on_page = listed.length === limit ? listed.at(-1) : undefined;
      const anchor = last_on_page && writeAnchor(last_on_page);
      return { people: await describePeople(listed), anchor };
    },
  };

  /** A group as one identity sees it. Watchable. */
  const profile: Watchable<GroupViewer, GroupProfile> = {
    topics: ({ group_id }) => [topics.group(group_id)],
    async read({ group_id, identity_id }) {
      const group = await get(group_id);
      const [is_member, is_requesting] = await Promise.all([
        isMember({ group_id, identity_id }),
        isListed(queries, 'join_requests', { group_id, identity_id }),
      ]);
      const read = async (list: PeopleList, limit: number) =>
        await describePeople(await selectPeople(queries, list, group_id, { limit }));
      const members = is_member || group.publicity === 'open' ? await read('members', store.MEMBERS_MAX) : [];
      const join_requests = group.owner_identity_id === identity_id ? await read('join_requests', PAGE_MAX) : [];
      return toGroupProfile(group, { is_member, is_requesting, members, join_requests }, public_url);
    },
  };

  /** Groups open to join requests, as one identity sees them. Watchable. */
  const open_groups: Watchable<string, { group: CountedGroup; is_member: boolean }[]> = {
    topics: (identity_id) => [topics.listOfOpenGroups(), topics.gamesOf(identity_id)],
    async read(identity_id) {
      const [open, own] = await Promise.all([
        store.selectOpenGroups(queries),
        store.selectGroupsOf(queries, identity_id),
      ]);
      const own_ids = new Set(own.map(({ group_id }) => group_id));
      return open.map((group) => ({ group, is_member: own_ids.has(group.group_id) }));
    },
  };

  /** Admits the join requests of a closed group until the group is full, for its owner. */
  async function admitWaiting({ group_id, identity_id }: GroupViewer): Promise<void> {
    const group = await get(group_id);
    requireOwner(group, identity_id);
    // In an open group each request waits for its own answer.
    if (group.publicity === 'open') return;
    for (const waiting of await selectPeople(queries, 'join_requests', group_id, { limit: store.MEMBERS_MAX })) {
      try {
        await membership.resolveJoin({ group_id, actor_id: identity_id, identity_id: waiting.identity_id }, true);
      } catch (error) {
        // The remaining requests keep waiting.
        if (error instanceof ServiceError && error.code === 'GROUP_FULL') return;
        // The identity is being deleted, and its request with it.
        if (!(error instanceof ServiceError && error.code === 'IDENTITY_NOT_FOUND')) throw error;
      }
    }
  }

  return {
    ...membership,
    ...createInvites(dependencies),
    people,
    profile,
    open_groups,
    /** Creates a group owned by the caller. Only administrators may, so they decide who can own games here. */
    async create(caller: CallerOf<'identity'>, display_name: string): Promise<GroupRow> {
      await identities.requireAdministrator(caller);
      const { identity_id } = caller;
      refuseProblems(groupProblems({ display_name }));
      const row: GroupRow = {
        group_id: crypto.randomUUID(),
        display_name,
        bio: '',
        publicity: 'open',
        owner_identity_id: identity_id,
        create_ts: clock.now(),
        avatar_upload_id: null,
      };
      await database.transact((tx) => store.insertGroup(tx, row));
      return row;
    },
    /** Returns what is wrong with a name, as paths that clients of the reference API know. */
    validate(display_name: string): ContentProblem[] {
      const problem = displayNameProblem(display_name, DISPLAY_NAME_BYTES_MAX);
      return problem ? [{ path: [problem === 'invalid' ? 'display-name-invalid' : problem] }] : [];
    },
    validateProfile: (change: GroupChange): ContentProblem[] => groupProblems(change),
    /**
     * Changes a group's profile, for its owner. Opening a closed group admits its join requests until the group is
     * full.
     */
    async updateProfile({ group_id, identity_id }: GroupViewer, change: GroupChange): Promise<void> {
      refuseProblems(groupProblems(change));
      const given = Object.entries(change).filter(([, value]) => value !== undefined);
      // Before the update: a repeated request admits the remaining people only while the group is still closed.
      if (change.publicity === 'open') await admitWaiting({ group_id, identity_id });
      await database.transact(async (tx) => {
        const members = await lockMembers(tx, group_id);
        await touchGroup(tx, group_id, { people: members, members });
        const group = await store.selectGroup(tx, group_id);
        if (!group) throw new ServiceError('GROUP_NOT_FOUND', {});
        requireOwner(group, identity_id);
        await store.updateGroup(tx, group_id, Object.fromEntries(given));
      });
    },
    /** Makes an upload the group's picture, for its owner. Returns the replaced upload. */
    async setAvatar(tx: Tx, { group_id, identity_id }: GroupViewer, avatar_upload_id: string): Promise<string | null> {
      const members = await lockMembers(tx, group_id);
      await touchGroup(tx, group_id, { people: members, members });
      const group = await store.selectGroup(tx, group_id);
      if (!group) throw new ServiceError('GROUP_NOT_FOUND', {});
      requireOwner(group, identity_id);
      await store.updateGroup(tx, group_id, { avatar_upload_id });
      return group.avatar_upload_id;
    },
    /** Throws GROUP_NOT_FOUND, or GROUP_INSUFFICIENT_PERMISSIONS unless the identity is the owner. */
    async requireOwner({ group_id, identity_id }: GroupViewer): Promise<void> {
      requireOwner(await get(group_id), identity_id);
    },
    /** Throws GROUP_NOT_FOUND. */
    get,
    isMember,
    /** Deletes a batch of invites that ended 30 days ago. Returns how many; more may remain. */
    deleteOldInvites: () => store.deleteEndedInvites(queries, after(clock.now(), -INVITES_KEPT_MS)),
    listOf: (identity_id: string) => store.selectGroupsOf(queries, identity_id),
    /** Returns the groups of an identity that another one sees: open ones, and closed ones of which both are members. */
    async handlesOf(identity_id: string, viewer_id: string) {
      const [its_groups, groups_of_viewer] = await Promise.all([
        store.selectGroupsOf(queries, identity_id),
        viewer_id === identity_id ? [] : store.selectGroupsOf(queries, viewer_id),
      ]);
      const shared_ids = new Set(groups_of_viewer.map(({ group_id }) => group_id));
      const isSeen = ({ group_id, publicity }: CountedGroup) =>
        viewer_id === identity_id || publicity === 'open' || shared_ids.has(group_id);
      return its_groups.filter(isSeen).map((group) => toGroupHandle(group, public_url));
    },
    /** Returns the group's members and locks the list until the transaction ends. */
    lockMembers,
    /** Returns the groups that list an identity as a member, as asking to join, or as banned. */
    groupsThatList: store.selectGroupsThatList,
    /** Returns whether an identity is a member of any group, or asks to join one. */
    isMemberOrAsksToJoin: store.selectIsMemberOrAsksToJoin,
    /** Returns which of the identities any group lists. */
    whichAreListed: store.selectListed,
    /** Returns whether an identity has the rights of a member: a member or an administrator. */
    async mayActAsMember({ group_id, identity_id }: PersonOfGroup): Promise<boolean> {
      if (await isMember({ group_id, identity_id })) return true;
      return (await identities.find(identity_id))?.is_admin === true;
    },
  };
}
