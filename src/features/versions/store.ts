import { and, asc, desc, eq, lt, sql } from 'drizzle-orm';
import type { Queries, Tx } from '../../platform/database/database.ts';
import { touch } from '../../platform/watch/versions.ts';
import { topics } from '../topics.ts';
import { type VersionRow, versionNumbers, versions } from './tables.ts';

/** Versions of a game. */
export const VERSIONS_MAX = 10_000;
const WARM_MAX = 100_000;

export type VersionSummaryRow = Pick<VersionRow, 'version_id' | 'create_ts' | 'display_name'>;

/** Inserts a version. Returns false if its game has the maximum of versions. */
export async function insertVersion(tx: Tx, row: VersionRow): Promise<boolean> {
  // Until the transaction ends, no other version of the game is created.
  await touch(tx, [topics.game(row.game_id)]);
  if ((await tx.$count(versions, eq(versions.game_id, row.game_id))) >= VERSIONS_MAX) return false;
  await tx.insert(versions).values(row);
  return true;
}

/** A version and its game. */
export interface VersionKey {
  game_id: string;
  version_id: string;
}

export async function selectVersion(
  queries: Queries,
  { game_id, version_id }: VersionKey,
): Promise<VersionRow | undefined> {
  const [row] = await queries
    .select()
    .from(versions)
    .where(and(eq(versions.game_id, game_id), eq(versions.version_id, version_id)));
  return row;
}

/** Returns the ids of versions that keep warm lobbies, in order. */
export async function selectKeptWarm(queries: Queries): Promise<string[]> {
  const rows = await queries
    .select({ version_id: versions.version_id })
    .from(versions)
    .where(eq(versions.keeps_warm, true))
    .orderBy(asc(versions.version_id))
    .limit(WARM_MAX);
  return rows.map(({ version_id }) => version_id);
}

/** Returns the versions of a game, oldest first. Of one that has more, from an earlier release, returns the newest. */
export async function selectVersions(queries: Queries, game_id: string): Promise<VersionSummaryRow[]> {
  const { version_id, create_ts, display_name } = versions;
  const newest_first = await queries
    .select({ version_id, create_ts, display_name })
    .from(versions)
    .where(eq(versions.game_id, game_id))
    .orderBy(desc(versions.create_ts), desc(versions.version_id))
    .limit(VERSIONS_MAX);
  return newest_first.reverse();
}

export async function isNameTaken(queries: Queries, game_id: string, display_name: string): Promise<boolean> {
  const rows = await queries
    .select({ version_id: versions.version_id })
    .from(versions)
    .where(and(eq(versions.game_id, game_id), eq(versions.display_name, display_name)));
  return rows.length > 0;
}

/** Returns the greatest number that follows a prefix in the names of a game's versions; 0 if there is none. */
export async function selectGreatestNumber(queries: Queries, game_id: string, prefix: string): Promise<number> {
  const rest = sql`substring(${versions.display_name} from ${prefix.length + 1}::int)`;
  const [row] = await queries
    .select({ greatest: sql<number | null>`max(${rest}::int)` })
    .from(versions)
    .where(
      and(
        eq(versions.game_id, game_id),
        sql`starts_with(${versions.display_name}, ${prefix})`,
        sql`${rest} ~ '^[0-9]{1,9}$'`,
      ),
    );
  return row?.greatest ?? 0;
}

/** Reserves the next number of a day: greater than all reserved numbers and all numbers in names of versions. */
export async function takeNumber(tx: Tx, game_id: string, day: string): Promise<number> {
  const next = (await selectGreatestNumber(tx, game_id, `${day}-`)) + 1;
  const [row] = await tx
    .insert(versionNumbers)
    .values({ game_id, day, number: next })
    .onConflictDoUpdate({
      target: [versionNumbers.game_id, versionNumbers.day],
      set: { number: sql`greatest(${versionNumbers.number} + 1, excluded.number)` },
    })
    .returning();
  return row?.number ?? next;
}

/** Deletes a game's numbers of earlier days. */
export async function dropNumbers(tx: Tx, game_id: string, before: string): Promise<void> {
  await tx.delete(versionNumbers).where(and(eq(versionNumbers.game_id, game_id), lt(versionNumbers.day, before)));
}
