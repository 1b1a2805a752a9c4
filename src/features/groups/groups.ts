import { after, type Clock } from '../../platform/clock.ts';
import type { Database, Tx } from '../../platform/database/database.ts';
import { ServiceError } from '../../platform/errors.ts';
import type { CallerOf } from '../../platform/tokens/caller.ts';
import type { Watchable } from '../../platform/watch/views.ts';
import type { Identities } from '../identities/identities.ts';
import { type ContentProblem, DISPLAY_NAME_BYTES_MAX, displayNameProblem, refuseProblems } from '../names.ts';
import { topics } from '../topics.ts';
import { isListed, type Listed, type PeopleList, selectPeople, touchGroup } from './members-store.ts';
import { createMembership, MEMBERS_MAX, requireOwner } from './membership.ts';
import { type GroupChange, groupProblems } from './rules.ts';
import * as store from './store.ts';
import type { CountedGroup, GroupRow } from './tables.ts';
import { type GroupProfile, type PeoplePage, toGroupProfile, toPerson } from './wire.ts';

export type { CountedGroup } from './tables.ts';

/** How long an invite that has expired or is used up still says so. */
const INVITES_KEPT_MS = 30 * 24 * 3_600_000;
const PAGE_DEFAULT = 32;
const PAGE_MAX = 64;

export type Groups = ReturnType<typeof createGroups>;

interface GroupsDependencies {
  database: Database;
  clock: Clock;
  identities: Identities;
  public_url: string;
  /** From the commit on, refuses the cloud and service tokens that the group's games had until now. */
  revokeTokensOf(tx: Tx, group_id: string): Promise<void>;
}

/** A group, as seen by somebody. */
interface Sight {
  group_id: string;
  identity_id: string;
}

interface PeopleSight extends Sight {
  list: PeopleList;
  anchor?: string | undefined;
  count?: number | undefined;
}

/** Teams of people, which own games. */
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

  const isMember = (group_id: string, identity_id: string) => isListed(queries, 'members', group_id, identity_id);

  /** People on a list, as others show them; those who were forgotten are left out. */
  async function describePeople(listed: Listed[]): Promise<PeoplePage['people']> {
    const found = await identities.list(listed.map(({ identity_id }) => identity_id));
    const by_id = new Map(found.map((identity) => [identity.identity_id, identity]));
    return listed.flatMap(({ identity_id, ts }) => {
      const identity = by_id.get(identity_id);
      return identity ? [toPerson(identity, ts, public_url)] : [];
    });
  }

  /** A closed group's members are known to its members; who would like to be one, or may not, to its owner. */
  async function requireSight(group: CountedGroup, { list, identity_id }: PeopleSight): Promise<void> {
    if (list !== 'members') return requireOwner(group, identity_id);
    if (group.publicity === 'open' || (await isMember(group.group_id, identity_id))) return;
    throw new ServiceError('GROUP_NOT_MEMBER', {});
  }

  /** A page of one of its lists. Watchable. */
  const people: Watchable<PeopleSight, PeoplePage> = {
    topics: ({ group_id }) => [topics.group(group_id)],
    async read(sight) {
      const group = await get(sight.group_id);
      await requireSight(group, sight);
      const limit = Math.min(sight.count ?? PAGE_DEFAULT, PAGE_MAX);
      const listed = await selectPeople(queries, sight.list, group.group_id, { after: sight.anchor, limit });
      const anchor = listed.length === limit ? listed.at(-1)?.identity_id : undefined;
      return { people: await describePeople(listed), anchor };
    },
  };

  /** A group as somebody sees it. Watchable. */
  const profile: Watchable<Sight, GroupProfile> = {
    topics: ({ group_id }) => [topics.group(group_id)],
    async read({ group_id, identity_id }) {
      const group = await get(group_id);
      const [is_member, is_requesting] = await Promise.all([
        isMember(group_id, identity_id),
        isListed(queries, 'join_requests', group_id, identity_id),
      ]);
      const read = async (list: PeopleList) =>
        await describePeople(await selectPeople(queries, list, group_id, { limit: PAGE_MAX }));
      const members = is_member || group.publicity === 'open' ? await read('members') : [];
      const join_requests = group.owner_identity_id === identity_id ? await read('join_requests') : [];
      return toGroupProfile(group, { is_member, is_requesting, members, join_requests }, public_url);
    },
  };

  /** Groups that anybody may ask to join, as somebody sees them. Watchable. */
  const suggested: Watchable<string, { group: CountedGroup; is_member: boolean }[]> = {
    topics: (identity_id) => [topics.openGroups(), topics.gamesOf(identity_id)],
    async read(identity_id) {
      const [open, own] = await Promise.all([
        store.selectOpenGroups(queries),
        store.selectGroupsOf(queries, identity_id),
      ]);
      const own_ids = new Set(own.map(({ group_id }) => group_id));
      return open.map((group) => ({ group, is_member: own_ids.has(group.group_id) }));
    },
  };

  return {
    ...createMembership(dependencies),
    people,
    profile,
    suggested,
    /** A group owned by the caller. Only administrators make groups, so only they decide who may own games here. */
    async create({ identity_id }: CallerOf<'identity'>, display_name: string): Promise<GroupRow> {
      const identity = await identities.find(identity_id);
      if (!identity?.is_admin) throw new ServiceError('IDENTITY_NOT_ADMIN', {});
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
    /** What is wrong with a name, by the field's paths of one element (field-behaviour 8.1). */
    validate(display_name: string): ContentProblem[] {
      const problem = displayNameProblem(display_name, DISPLAY_NAME_BYTES_MAX);
      return problem ? [{ path: [problem === 'invalid' ? 'display-name-invalid' : problem] }] : [];
    },
    validateProfile: (change: GroupChange): ContentProblem[] => groupProblems(change),
    /** Changes what others see of a group; for its owner. A closed one that is opened takes in those who asked, until it is full. */
    async updateProfile({ group_id, identity_id }: Sight, change: GroupChange): Promise<void> {
      refuseProblems(groupProblems(change));
      const given = Object.entries(change).filter(([, value]) => value !== undefined);
      const before = await database.transact(async (tx) => {
        const members = await lockMembers(tx, group_id);
        await touchGroup(tx, group_id, { people: members, members });
        const group = await store.selectGroup(tx, group_id);
        if (!group) throw new ServiceError('GROUP_NOT_FOUND', {});
        requireOwner(group, identity_id);
        await store.updateGroup(tx, group_id, Object.fromEntries(given));
        return group;
      });
      // Only opening it says yes to those who wait: in an open group each waits for an answer of his own.
      if (before.publicity === 'open' || change.publicity !== 'open') return;
      for (const waiting of await selectPeople(queries, 'join_requests', group_id, { limit: MEMBERS_MAX })) {
        try {
          await this.resolveJoin({ group_id, actor_id: identity_id, identity_id: waiting.identity_id }, true);
        } catch (error) {
          // The rest goes on waiting: the group is open all the same.
          if (error instanceof ServiceError && error.code === 'GROUP_FULL') return;
          throw error;
        }
      }
    },
    /** Makes an upload a group's picture; for its owner. Returns the one that it replaces. */
    async setAvatar(tx: Tx, { group_id, identity_id }: Sight, avatar_upload_id: string): Promise<string | null> {
      const members = await lockMembers(tx, group_id);
      await touchGroup(tx, group_id, { people: members, members });
      const group = await store.selectGroup(tx, group_id);
      if (!group) throw new ServiceError('GROUP_NOT_FOUND', {});
      requireOwner(group, identity_id);
      await store.updateGroup(tx, group_id, { avatar_upload_id });
      return group.avatar_upload_id;
    },
    /** Throws GROUP_NOT_FOUND, or GROUP_INSUFFICIENT_PERMISSIONS for everybody but the owner. */
    async requireOwner({ group_id, identity_id }: Sight): Promise<void> {
      requireOwner(await get(group_id), identity_id);
    },
    /** Throws GROUP_NOT_FOUND when there is none. */
    get,
    isMember,
    /** Deletes some invites that ended 30 days ago. Returns how many; there may be more. */
    forgetInvites: () => store.deleteEndedInvites(queries, after(clock.now(), -INVITES_KEPT_MS)),
    listOf: (identity_id: string) => store.selectGroupsOf(queries, identity_id),
    /** Who is told when something of the group changes; nobody comes or goes until the transaction ends. */
    lockMembers,
    /** The groups that have somebody on one of their lists. */
    showing: store.selectGroupsShowing,
    listed: store.selectListed,
    /** Whether an identity may do with the group's things what its members may. */
    async admits(group_id: string, identity_id: string): Promise<boolean> {
      if (await isMember(group_id, identity_id)) return true;
      return (await identities.find(identity_id))?.is_admin === true;
    },
  };
}
