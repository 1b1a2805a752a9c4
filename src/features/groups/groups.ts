import type { Clock } from '../../platform/clock.ts';
import type { Database, Queries } from '../../platform/database/database.ts';
import { ServiceError } from '../../platform/errors.ts';
import type { CallerOf } from '../../platform/tokens/caller.ts';
import type { Identities } from '../identities/identities.ts';
import { type ContentProblem, DISPLAY_NAME_BYTES_MAX, displayNameProblem, refuseProblems } from '../names.ts';
import { insertGroup, isMember, selectGroup, selectGroupsOf, selectMemberIds } from './store.ts';
import type { GroupRow } from './tables.ts';

export type Groups = ReturnType<typeof createGroups>;

interface GroupsDependencies {
  database: Database;
  clock: Clock;
  identities: Identities;
}

/** Teams of people, which own games. */
export function createGroups({ database, clock, identities }: GroupsDependencies) {
  return {
    /** A group owned by the caller. Only administrators make groups, so only they decide who may own games here. */
    async create({ identity_id }: CallerOf<'identity'>, display_name: string): Promise<GroupRow> {
      const identity = await identities.find(identity_id);
      if (!identity?.is_admin) throw new ServiceError('IDENTITY_NOT_ADMIN', {});
      const problem = displayNameProblem(display_name, DISPLAY_NAME_BYTES_MAX);
      refuseProblems(problem ? [{ path: ['display-name', problem] }] : []);
      const row: GroupRow = {
        group_id: crypto.randomUUID(),
        display_name,
        bio: '',
        publicity: 'open',
        owner_identity_id: identity_id,
        create_ts: clock.now(),
      };
      await database.transact((tx) => insertGroup(tx, row));
      return row;
    },
    /** What is wrong with a name, by the field's paths of one element (field-behaviour 8.1). */
    validate(display_name: string): ContentProblem[] {
      const problem = displayNameProblem(display_name, DISPLAY_NAME_BYTES_MAX);
      return problem ? [{ path: [problem === 'invalid' ? 'display-name-invalid' : problem] }] : [];
    },
    /** Throws GROUP_NOT_FOUND when there is none. */
    async get(group_id: string) {
      const group = await selectGroup(database.queries, group_id);
      if (!group) throw new ServiceError('GROUP_NOT_FOUND', {});
      return group;
    },
    isMember: (group_id: string, identity_id: string) => isMember(database.queries, group_id, identity_id),
    listOf: (identity_id: string) => selectGroupsOf(database.queries, identity_id),
    /** Who is told when something of the group changes. */
    memberIds: (queries: Queries, group_id: string) => selectMemberIds(queries, group_id),
    /** Whether an identity may do with the group's things what its members may. */
    async admits(group_id: string, identity_id: string): Promise<boolean> {
      if (await isMember(database.queries, group_id, identity_id)) return true;
      return (await identities.find(identity_id))?.is_admin === true;
    },
  };
}
