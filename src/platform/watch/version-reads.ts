import type { Queries } from '../database/database.ts';
import { createBatches } from './batches.ts';
import type { Feed } from './feed.ts';
import { readVersions } from './versions.ts';

/** Reads versions by topic; a topic that was never touched has version 0. */
export type ReadVersions = (names: string[]) => Promise<Map<string, number>>;

/**
 * Returns the number of a state: the sum of its topics' versions. It falls only if a topic is deleted, or the database
 * restored.
 */
export function stateNumberOf(versions: ReadonlyMap<string, number>): number {
  let total = 0;
  for (const version of versions.values()) total += version;
  return total;
}

/** Batches reads of versions. `observe` gets the versions before the callers do. */
export function createVersionReads(queries: Queries, observe: Feed['observe']): ReadVersions {
  const read = createBatches(
    async (names: string[]) => {
      const versions = await readVersions(queries, names);
      observe(versions);
      return names.map((name) => versions.get(name) ?? 0);
    },
    (name) => name,
  );
  return async (names) => new Map(await Promise.all(names.map(async (name) => [name, await read(name)] as const)));
}
