import { eq, lt } from 'drizzle-orm';
import type { Queries, Tx } from '../../platform/database/database.ts';
import { deleteTopics, touch } from '../../platform/watch/versions.ts';
import { topics } from '../topics.ts';
import { type DeviceLinkRow, deviceLinks } from './tables.ts';

/**
 * Inserts a completed link, and deletes links completed before `delete_before`. Returns false if the link was completed
 * earlier.
 */
export async function insertLink(tx: Tx, row: DeviceLinkRow, delete_before: Date): Promise<boolean> {
  await touch(tx, [topics.deviceLink(row.device_link_id)]);
  const deleted = await tx
    .delete(deviceLinks)
    .where(lt(deviceLinks.complete_ts, delete_before))
    .returning({ device_link_id: deviceLinks.device_link_id });
  await deleteTopics(
    tx,
    deleted.map(({ device_link_id }) => topics.deviceLink(device_link_id)),
  );
  const rows = await tx.insert(deviceLinks).values(row).onConflictDoNothing().returning();
  return rows.length > 0;
}

export async function selectLink(queries: Queries, device_link_id: string): Promise<DeviceLinkRow | undefined> {
  const [row] = await queries.select().from(deviceLinks).where(eq(deviceLinks.device_link_id, device_link_id));
  return row;
}
