import { asc, eq } from 'drizzle-orm';
import type { Queries } from '../../platform/database/database.ts';
import { type IdentityRow, identities } from './tables.ts';

export async function insertIdentity(queries: Queries, row: IdentityRow): Promise<void> {
  await queries.insert(identities).values(row);
}

export async function selectIdentity(queries: Queries, identity_id: string): Promise<IdentityRow | undefined> {
  const [row] = await queries.select().from(identities).where(eq(identities.identity_id, identity_id));
  return row;
}

/** The first administrator there was. */
export async function selectAdministrator(queries: Queries): Promise<IdentityRow | undefined> {
  const [row] = await queries
    .select()
    .from(identities)
    .where(eq(identities.is_admin, true))
    .orderBy(asc(identities.create_ts), asc(identities.identity_id))
    .limit(1);
  return row;
}
