import { and, desc, eq, lt } from 'drizzle-orm';
import type { Queries } from '../../platform/database/database.ts';
import { deleteOldRows } from '../../platform/database/old-rows.ts';
import { type AuditEntryRow, auditEntries } from './tables.ts';

/** The number of entries of a full page. */
export const PAGE_ENTRIES = 64;
const DELETED_AT_ONCE_MAX = 5_000;

export async function insertEntry(queries: Queries, row: AuditEntryRow): Promise<void> {
  await queries.insert(auditEntries).values(row);
}

export async function updateEntry(
  queries: Queries,
  entry_id: string,
  values: Partial<Omit<AuditEntryRow, 'entry_id'>>,
): Promise<void> {
  await queries.update(auditEntries).set(values).where(eq(auditEntries.entry_id, entry_id));
}

export async function deleteEntry(queries: Queries, entry_id: string): Promise<void> {
  await queries.delete(auditEntries).where(eq(auditEntries.entry_id, entry_id));
}

/**
 * Chooses entries. `of`: those of a game, of a group, or all. Of these, the other members choose those of a namespace, by a
 * person, and older than the entry `before`.
 */
export interface EntryFilter {
  of: { game_id: string } | { group_id: string } | 'all';
  namespace_id?: string | undefined;
  identity_id?: string | undefined;
  before?: string | undefined;
}

/** Returns a page of entries, newest first. */
export async function selectEntries(queries: Queries, filter: EntryFilter): Promise<AuditEntryRow[]> {
  const { of, namespace_id, identity_id, before } = filter;
  const conditions = [
    of !== 'all' && 'game_id' in of ? eq(auditEntries.game_id, of.game_id) : undefined,
    of !== 'all' && 'group_id' in of ? eq(auditEntries.group_id, of.group_id) : undefined,
    namespace_id === undefined ? undefined : eq(auditEntries.namespace_id, namespace_id),
    identity_id === undefined
      ? undefined
      : and(eq(auditEntries.caller_kind, 'identity'), eq(auditEntries.caller_id, identity_id)),
    before === undefined ? undefined : lt(auditEntries.entry_id, before),
  ];
  return await queries
    .select()
    .from(auditEntries)
    .where(and(...conditions))
    .orderBy(desc(auditEntries.entry_id))
    .limit(PAGE_ENTRIES);
}

/** Deletes a batch of entries that were created before a moment. Returns how many; more may remain. */
export async function deleteEntriesBefore(queries: Queries, moment: Date): Promise<number> {
  return await deleteOldRows(queries, auditEntries.create_ts, { before: moment, limit: DELETED_AT_ONCE_MAX });
}
