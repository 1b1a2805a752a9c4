import type { Clock } from '../../platform/clock.ts';
import type { Database, Tx } from '../../platform/database/database.ts';
import { ServiceError } from '../../platform/errors.ts';
import type { Identities } from '../identities/identities.ts';
import * as store from './members-store.ts';
import { lockGroup, MEMBERS_MAX, selectGroup, selectMemberIds } from './store.ts';
import type { CountedGroup } from './tables.ts';

export interface MembershipChangesDependencies {
  database: Database;
  clock: Clock;
  identities: Identities;
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
export type Work = (tx: Tx, group: CountedGroup, person: Person) => Promise<void>;

/**
 * Creates the steps that changes of membership share. Each change locks the group, so that changes of one group run one
 * after another.
 */
export function createMembershipChanges({ database, clock, identities }: MembershipChangesDependencies) {
  /** Runs a change of one person's membership of a group, and bumps all that shows it. */
  async function change(
    { group_id, identity_id, is_join_request = false, list, successor }: Change,
    work: Work,
  ): Promise<void> {
    await database.transact(async (tx) => {
      await lockGroup(tx, group_id);
      // A concurrent change of the profile either ran before this lock, or sees the new membership and announces it.
      const person = await identities.lock(tx, identity_id);
      const is_listed = list === undefined || (await store.isListed(tx, list, { group_id, identity_id }));
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

  /** Makes a person a member. Throws IDENTITY_NOT_FOUND, GROUP_MEMBER_BANNED, GROUP_FULL or GROUP_ALREADY_MEMBER. */
  async function addMember(tx: Tx, { group_id, member_count }: CountedGroup, person: Person): Promise<void> {
    if (person?.is_deleted !== false) throw new ServiceError('IDENTITY_NOT_FOUND', {});
    const { identity_id } = person;
    if (await store.isListed(tx, 'bans', { group_id, identity_id })) throw new ServiceError('GROUP_MEMBER_BANNED', {});
    if (member_count >= MEMBERS_MAX) throw new ServiceError('GROUP_FULL', { max: MEMBERS_MAX });
    if (!(await store.addPerson(tx, 'members', group_id, { identity_id, ts: clock.now() }))) {
      throw new ServiceError('GROUP_ALREADY_MEMBER', {}, { metadata: { group_id } });
    }
    await store.removePerson(tx, 'join_requests', { group_id, identity_id });
  }

  return { change, addMember };
}
