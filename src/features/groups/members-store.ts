import { and, asc, eq, gt, isNull, lt, or, sql } from 'drizzle-orm';
import type { Queries, Tx } from '../../platform/database/database.ts';
import { timestamptz } from '../../platform/database/moments.ts';
import { touch } from '../../platform/watch/versions.ts';
import { topics } from '../topics.ts';
import { groupBans, groupInvites, groupJoinRequests, groupMembers, groups, type InviteRow } from './tables.ts';

/** The lists of people of a group. */
export type PeopleList = 'members' | 'join_requests' | 'bans';

/** Join requests that one statement deletes at most. */
const REQUESTS_AT_ONCE = 1_000;
const GROUPS_AT_ONCE = 256;

/** A person on a list. `ts`: when the person was added. */
export interface Listed {
  identity_id: string;
  ts: Date;
}

/**
 * The last entry of a page. `ts` is undefined in an anchor of an earlier release, which needs the entry to be there
 * still.
 */
export type LastListed = Pick<Listed, 'identity_id'> & { ts: Date | undefined };

/** Returns a page of a list, oldest entry first, after the last entry of the previous page. */
export async function selectPeople(
  queries: Queries,
  list: PeopleList,
  group_id: string,
  { after, limit }: { after?: LastListed | undefined; limit: number },
): Promise<Listed[]> {
  const { table, ts } = tableOf(list);
  const isAfter = (last: LastListed) => {
    const { identity_id } = last;
    const listed_ts = queries
      .select({ ts })
      .from(table)
      .where(and(eq(table.group_id, group_id), eq(table.identity_id, identity_id)));
    const last_ts = last.ts ? timestamptz(last.ts) : sql`(${listed_ts})`;
    return sql`(${ts}, ${table.identity_id}) > (${last_ts}, ${identity_id}::uuid)`;
  };
  return await queries
    .select({ identity_id: table.identity_id, ts })
    .from(table)
    .where(and(eq(table.group_id, group_id), after && isAfter(after)))
    .orderBy(asc(ts), asc(table.identity_id))
    .limit(limit);
}

/** A person and a group. The person may or may not be in a list of the group. */
export interface PersonOfGroup {
  group_id: string;
  identity_id: string;
}

export async function isListed(
  queries: Queries,
  list: PeopleList,
  { group_id, identity_id }: PersonOfGroup,
): Promise<boolean> {
  const { table } = tableOf(list);
  const rows = await queries
    .select({ identity_id: table.identity_id })
    .from(table)
    .where(and(eq(table.group_id, group_id), eq(table.identity_id, identity_id)));
  return rows.length > 0;
}

/** Returns ids of groups that have a person on a list, after the id `after`, in order. */
export async function selectGroupIdsListing(
  queries: Queries,
  list: PeopleList,
  identity_id: string,
  after: string | undefined,
): Promise<string[]> {
  const { table } = tableOf(list);
  const is_later = after === undefined ? undefined : gt(table.group_id, after);
  const rows = await queries
    .select({ group_id: table.group_id })
    .from(table)
    .where(and(eq(table.identity_id, identity_id), is_later))
    .orderBy(asc(table.group_id))
    .limit(GROUPS_AT_ONCE);
  return rows.map(({ group_id }) => group_id);
}

/**
 * Bumps a group, the profiles of `people` and the lists of games of `members`. Without members only its join requests change,
 * which the list of open groups does not show. Concurrent changes of the group run one after another.
 */
export async function touchGroup(
  tx: Tx,
  group_id: string,
  { people, members }: { people: string[]; members: string[] },
): Promise<void> {
  await touch(tx, [
    topics.group(group_id),
    ...(members.length > 0 ? [topics.listOfOpenGroups()] : []),
    ...people.map(topics.identity),
    ...[...people, ...members].map(topics.gamesOf),
  ]);
}

/** Adds a person to a list. Returns false if the person is on it already. */
export async function addPerson(
  tx: Tx,
  list: PeopleList,
  group_id: string,
  { identity_id, ts }: Listed,
): Promise<boolean> {
  const row = { group_id, identity_id };
  const insert = () => {
    switch (list) {
      case 'members':
        return tx.insert(groupMembers).values({ ...row, join_ts: ts });
      case 'join_requests':
        return tx.insert(groupJoinRequests).values({ ...row, ts });
      case 'bans':
        return tx.insert(groupBans).values({ ...row, ts });
    }
  };
  return (await insert().onConflictDoNothing().returning()).length > 0;
}

/** Removes the oldest join requests of a group, so that only the `max` newest stay: at most 1,000 at once. */
export async function keepNewestRequests(tx: Tx, group_id: string, max: number): Promise<void> {
  await tx.execute(sql`
    delete from ${groupJoinRequests} where group_id = ${group_id} and identity_id = any(array(
      select identity_id from ${groupJoinRequests} where group_id = ${group_id}
      order by ts desc, identity_id desc offset ${max} limit ${REQUESTS_AT_ONCE}
    ))`);
}

/** Returns a group with a join request from before a given time; undefined if there is none. */
export async function selectGroupOfOldRequest(queries: Queries, before: Date): Promise<string | undefined> {
  const [row] = await queries
    .select({ group_id: groupJoinRequests.group_id })
    .from(groupJoinRequests)
    .where(lt(groupJoinRequests.ts, before))
    .orderBy(asc(groupJoinRequests.ts))
    .limit(1);
  return row?.group_id;
}

/** Deletes a batch of a group's join requests from before a given time. The caller bumps the group. Returns how many. */
export async function deleteOldRequests(tx: Tx, group_id: string, before: Date): Promise<number> {
  const rows = await tx.execute(sql`
    delete from ${groupJoinRequests} where group_id = ${group_id} and identity_id = any(array(
      select identity_id from ${groupJoinRequests}
      where group_id = ${group_id} and ts < ${before.toISOString()}::timestamptz
      order by ts, identity_id limit ${REQUESTS_AT_ONCE}
    )) returning identity_id`);
  return rows.length;
}

/** Removes a person from a list. Returns false if the person is not on it. */
export async function removePerson(
  tx: Tx,
  list: PeopleList,
  { group_id, identity_id }: PersonOfGroup,
): Promise<boolean> {
  const { table } = tableOf(list);
  const rows = await tx
    .delete(table)
    .where(and(eq(table.group_id, group_id), eq(table.identity_id, identity_id)))
    .returning({ identity_id: table.identity_id });
  return rows.length > 0;
}

export async function setOwner(tx: Tx, group_id: string, owner_identity_id: string): Promise<void> {
  await tx.update(groups).set({ owner_identity_id }).where(eq(groups.group_id, group_id));
}

export async function insertInvite(queries: Queries, row: InviteRow): Promise<void> {
  await queries.insert(groupInvites).values(row);
}

export async function selectInvite(queries: Queries, code: string): Promise<InviteRow | undefined> {
  const [row] = await queries.select().from(groupInvites).where(eq(groupInvites.code, code));
  return row;
}

/** Returns how many invites of a group can be used. */
export async function countOpenInvites(queries: Queries, group_id: string, now: Date): Promise<number> {
  return await queries.$count(
    groupInvites,
    and(
      eq(groupInvites.group_id, group_id),
      or(isNull(groupInvites.expire_ts), gt(groupInvites.expire_ts, now)),
      or(isNull(groupInvites.uses_left), gt(groupInvites.uses_left, 0)),
    ),
  );
}

/** Uses an invite once. The last use ends it now: it is kept, with its error, for as long as one that expired now. */
export async function useInvite(tx: Tx, code: string, now: Date): Promise<void> {
  await tx
    .update(groupInvites)
    .set({
      uses_left: sql`${groupInvites.uses_left} - 1`,
      expire_ts: sql`case when ${groupInvites.uses_left} = 1
        then least(${groupInvites.expire_ts}, ${timestamptz(now)}) else ${groupInvites.expire_ts} end`,
    })
    .where(eq(groupInvites.code, code));
}

/** Deletes all invites of a group. */
export async function deleteInvites(tx: Tx, group_id: string): Promise<void> {
  await tx.delete(groupInvites).where(eq(groupInvites.group_id, group_id));
}

function tableOf(list: PeopleList) {
  switch (list) {
    case 'members':
      return { table: groupMembers, ts: groupMembers.join_ts };
    case 'join_requests':
      return { table: groupJoinRequests, ts: groupJoinRequests.ts };
    case 'bans':
      return { table: groupBans, ts: groupBans.ts };
  }
}
