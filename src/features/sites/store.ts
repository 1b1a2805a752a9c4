import { and, desc, eq } from 'drizzle-orm';
import type { Queries, Tx } from '../../platform/database/database.ts';
import { touch } from '../../platform/watch/versions.ts';
import { topics } from '../topics.ts';
import { type SiteRow, sites } from './tables.ts';

/** Sites of a game. */
export const SITES_MAX = 10_000;

/** Inserts a site. Returns false if its game has the maximum of sites. */
export async function insertSite(tx: Tx, row: SiteRow): Promise<boolean> {
  // Until the transaction ends, no other site of the game is created.
  await touch(tx, [topics.sitesOf(row.game_id)]);
  if ((await tx.$count(sites, eq(sites.game_id, row.game_id))) >= SITES_MAX) return false;
  await tx.insert(sites).values(row);
  return true;
}

/** Returns all sites of a game, newest first. */
export async function selectSites(queries: Queries, game_id: string): Promise<SiteRow[]> {
  return await queries
    .select()
    .from(sites)
    .where(eq(sites.game_id, game_id))
    .orderBy(desc(sites.create_ts), desc(sites.site_id))
    .limit(SITES_MAX);
}

export async function selectSite(queries: Queries, game_id: string, site_id: string): Promise<SiteRow | undefined> {
  const [row] = await queries
    .select()
    .from(sites)
    .where(and(eq(sites.game_id, game_id), eq(sites.site_id, site_id)));
  return row;
}

export async function setComplete(tx: Tx, upload_id: string, now: Date): Promise<void> {
  const [site] = await tx.select({ game_id: sites.game_id }).from(sites).where(eq(sites.upload_id, upload_id));
  if (site) await touch(tx, [topics.sitesOf(site.game_id)]);
  await tx.update(sites).set({ complete_ts: now }).where(eq(sites.upload_id, upload_id));
}
