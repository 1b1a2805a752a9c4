import { cp, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import journal from '../../drizzle/meta/_journal.json' with { type: 'json' };
import { findAsset } from '../../src/platform/assets.ts';

/** Writes the migrations of a later release to a folder. */
export async function writeNextRelease(folder: string): Promise<void> {
  const last = journal.entries.at(-1);
  if (!last) throw new Error('there are migrations');
  const next = { ...last, idx: last.idx + 1, when: last.when + 1, tag: '9999_next' };
  await writeRelease(folder, [...journal.entries, next]);
  await writeFile(join(folder, `${next.tag}.sql`), 'create table of_the_next_release (id int);');
}

/** Writes the migrations of an earlier release to a folder: all but the last ones. */
export async function writeEarlierRelease(folder: string, without: number): Promise<void> {
  await writeRelease(folder, journal.entries.slice(0, -without));
}

async function writeRelease(folder: string, entries: typeof journal.entries): Promise<void> {
  await cp(findAsset('drizzle'), folder, { recursive: true });
  await writeFile(join(folder, 'meta/_journal.json'), JSON.stringify({ ...journal, entries }));
}
