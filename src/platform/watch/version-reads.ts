import type { Queries } from '../database/database.ts';
import type { Feed } from './feed.ts';
import { readVersions } from './versions.ts';

const TOPICS_PER_QUERY_MAX = 1_000;

/** Reads the versions of topics, by topic; what has never been touched is 0. */
export type VersionReads = (names: string[]) => Promise<Map<string, number>>;

/**
 * Lets all who ask in one turn of the event loop share a query: many come back together. Nobody joins a query that has
 * begun: what was changed before he asked must be in what he sees. `learn` is told what was read, before anybody.
 */
export function createVersionReads(queries: Queries, observe: Feed['observe']): VersionReads {
  let wanted = new Set<string>();
  let round: Promise<Map<string, number>> | undefined;

  async function begin(): Promise<Map<string, number>> {
    await new Promise((resolve) => setImmediate(resolve));
    const names = [...wanted];
    wanted = new Set();
    round = undefined;
    const batches = Array.from({ length: Math.ceil(names.length / TOPICS_PER_QUERY_MAX) }, (_, batch) =>
      names.slice(batch * TOPICS_PER_QUERY_MAX, (batch + 1) * TOPICS_PER_QUERY_MAX),
    );
    const read = await Promise.all(batches.map((batch) => readVersions(queries, batch)));
    const versions = new Map(read.flatMap((some) => [...some]));
    observe(versions);
    return versions;
  }

  return async (names) => {
    for (const name of names) wanted.add(name);
    round ??= begin();
    const versions = await round;
    return new Map(names.map((name) => [name, versions.get(name) ?? 0]));
  };
}
