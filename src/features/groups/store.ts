import { asc, desc, eq, getTableColumns, sql } from 'drizzle-orm';
import type { Queries, Tx } from '../../platform/database/database.ts';
import { touch } from '../../platform/watch/versions.ts';
import { topics } from '../topics.ts';
import {
  type CountedGroup,
  type GroupRow,
  groupBans,
  groupInvites,
  groupJoinRequests,
  groupMembers,
  groups,
} from './tables.ts';

const INVITES_AT_ONCE = 1_000;
const OPEN_GROUPS_MAX = 64;
/** Limit of the reference API. */
export const MEMBERS_MAX = 256;
const GROUPS_MAX = 10_000;
const GROUPS_THAT_LIST_MAX = 10_000;

const counted = {
  ...getTableColumns(groups),
  member_count: sql<number>`(select count(*)::int from ${groupMembers} as members where members.group_id = ${groups}.group_id)`,
};

export async function insertGroup(tx: Tx, row: GroupRow): Promise<void> {
  await touch(tx, [topics.gamesOf(row.owner_identity_id), topics.listOfOpenGroups()]);
  await tx.insert(groups).values(row);
  await tx
    .insert(groupMembers)
    .values({ group_id: row.group_id, identity_id: row.owner_identity_id, join_ts: row.create_ts });
}

/** Locks a group: joins, leaves and changes wait until the transaction ends. Call it before touching topics. */
export async function lockGroup(tx: Tx, group_id: string): Promise<void> {
  await tx.select({ group_id: groups.group_id }).from(groups).where(eq(groups.group_id, group_id)).for('no key update');
}

/** Returns the ids of the members, the longest member first. */
export async function selectMemberIds(tx: Tx, group_id: string): Promise<string[]> {
  const rows = await tx
    .select({ identity_id: groupMembers.identity_id })
    .from(groupMembers)
    .where(eq(groupMembers.group_id, group_id))
    .orderBy(asc(groupMembers.join_ts), asc(groupMembers.identity_id))
    .limit(MEMBERS_MAX);
  return rows.map(({ identity_id }) => identity_id);
}

/** Returns the groups that list an identity as a member, as asking to join, or as banned. */
export async function selectGroupsThatList(queries: Queries, identity_id: string): Promise<string[]> {
  const lists = [groupMembers, groupJoinRequests, groupBans].map(
    (list) => sql`select group_id from ${list} where identity_id = ${identity_id}`,
  );
  const rows = await queries.execute<{ group_id: string }>(sql`
    ${sql.join(lists, sql` union `)} order by group_id limit ${GROUPS_THAT_LIST_MAX}`);
  return rows.map(({ group_id }) => group_id);
}

/** Returns whether an identity is a member of any group, or asks to join one. */
export async function selectIsMemberOrAsksToJoin(queries: Queries, identity_id: string): Promise<boolean> {
  const lists = [groupMembers, groupJoinRequests].map(
    (list) => sql`select from ${list} where identity_id = ${identity_id}`,
  );
  const rows = await queries.execute(sql`(${sql.join(lists, sql` union all `)}) limit 1`);
  return rows.length > 0;
}

/** Returns which of the identities are on a list of any group. The owner of a group is one of its members. */
export async function selectListed(queries: Queries, identity_ids: string[]): Promise<string[]> {
  const among = sql`identity_id = any(${sql.param(identity_ids)}::uuid[])`;
  const lists = [groupMembers, groupJoinRequests, groupBans].map(
    (list) => sql`select identity_id from ${list} where ${among}`,
  );
  const rows = await queries.execute<{ identity_id: string }>(sql`
    ${sql.join(lists, sql` union `)} order by identity_id limit ${identity_ids.length}`);
  return rows.map(({ identity_id }) => identity_id);
}

export async function selectGroup(queries: Queries, group_id: string): Promise<CountedGroup | undefined> {
  const [row] = await queries.select(counted).from(groups).where(eq(groups.group_id, group_id));
  return row;
}

/** Returns the groups of which an identity is a member, oldest first. */
export async function selectGroupsOf(queries: Queries, identity_id: string): Promise<CountedGroup[]> {
  return await queries
    .select(counted)
    .from(groups)
    .innerJoin(groupMembers, eq(groups.group_id, groupMembers.group_id))
    .where(eq(groupMembers.identity_id, identity_id))
    .orderBy(asc(groups.create_ts), asc(groups.group_id))
    .limit(GROUPS_MAX);
}

/** Updates a group. The caller bumps its versions. */
export async function updateGroup(tx: Tx, group_id: string, values: Partial<GroupRow>): Promise<void> {
  await tx
    .update(groups)
    .set({ group_id, ...values })
    .where(eq(groups.group_id, group_id));
}

/** Returns open groups, newest first. */
export async function selectOpenGroups(queries: Queries): Promise<CountedGroup[]> {
  return await queries
    .select(counted)
    .from(groups)
    .where(eq(groups.publicity, 'open'))
    .orderBy(desc(groups.create_ts), asc(groups.group_id))
    .limit(OPEN_GROUPS_MAX);
}

/**
 * Deletes a batch of invites that ended before a given time. Those that an earlier release used up have no time of their
 * end, so the time of their creation counts. Returns how many.
 */
export async function deleteEndedInvites(queries: Queries, before: Date): Promise<number> {
  const moment = sql`${before.toISOString()}::timestamptz`;
  const rows = await queries.execute(sql`
    delete from ${groupInvites} where code = any(array(
      (select code from ${groupInvites} where expire_ts < ${moment} order by expire_ts limit ${INVITES_AT_ONCE})
      union all
      (select code from ${groupInvites} where uses_left = 0 and expire_ts is null and create_ts < ${moment}
        order by create_ts limit ${INVITES_AT_ONCE})
    )) returning code`);
  return rows.length;
}
