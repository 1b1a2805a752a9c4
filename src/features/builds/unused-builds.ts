import { existsSync } from 'node:fs';
import { readdir, stat, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { CLOCK_SKEW_MAX_MS, type Clock } from '../../platform/clock.ts';
import type { DiskSpace } from '../../platform/system/disk-space.ts';
import { hasErrorCode } from '../../platform/system/system-errors.ts';

/** A build that was used within this time stays, also on a full disk, because its server may not be recorded yet. */
const RECENT_MS = 60_000;

interface UnusedBuildsDependencies {
  clock: Clock;
  space: DiskSpace;
  /** The directory of unpacked builds, with a folder for each, in which each content has a directory. */
  directory: string;
  /** Removes a directory so that it is never found incomplete. */
  discard(content_directory: string): Promise<void>;
}

/** The ids of builds that servers use, with the time at which the oldest of these servers was created. */
type BuildsInUse = ReadonlyMap<string, Date>;

export interface RemoveUnusedOptions {
  /** Builds that were last used earlier are removed. */
  before: Date;
  /**
   * Returns the builds that servers of this machine use, among them all servers that are starting, with the time at which
   * the oldest of these servers was created.
   */
  buildsInUse(): Promise<BuildsInUse>;
}

interface Content {
  build_id: string;
  path: string;
  /** In ms since 1970. */
  last_use: number;
  /** Whether no other content of the build was used later. New servers use it, unless the base image was replaced. */
  is_latest: boolean;
}

/** A build whose files were removed from this machine. They are unpacked again when a server needs them. */
export interface RemovedBuild {
  build_id: string;
  unused_for_ms: number;
}

/**
 * Knows when each unpacked build of this machine was last used, and removes those that no server uses. The time of a
 * directory on disk remembers the last use across restarts.
 */
export function createUnusedBuilds({ clock, space, directory, discard }: UnusedBuildsDependencies) {
  const last_uses = new Map<string, number>();
  const removals = new Map<string, Promise<boolean>>();
  let is_short = false;
  let notifyShortage = () => {};

  /** Records a use of a build's content. Returns false if it is not on this machine. */
  async function use(path: string): Promise<boolean> {
    // Waits for a removal that has begun. After that, nothing is awaited until the use is recorded.
    while (removals.has(path)) await removals.get(path);
    if (!existsSync(path)) return false;
    const now = clock.now();
    last_uses.set(path, now.getTime());
    await utimes(path, now, now);
    return true;
  }

  async function listContents(): Promise<Content[]> {
    const contents: Omit<Content, 'is_latest'>[] = [];
    for (const build_id of await listFolders(directory)) {
      for (const name of await listFolders(join(directory, build_id))) {
        const path = join(directory, build_id, name);
        const stats = await stat(path).catch(ignoreMissing);
        if (stats) contents.push({ build_id, path, last_use: lastUseOf(path, stats.mtimeMs) });
      }
    }
    contents.sort((a, b) => a.last_use - b.last_use);
    const latest = new Map(contents.map(({ build_id, path }) => [build_id, path]));
    return contents.map((content) => ({ ...content, is_latest: latest.get(content.build_id) === content.path }));
  }

  function lastUseOf(path: string, on_disk = 0): number {
    return Math.max(last_uses.get(path) ?? 0, Math.floor(on_disk));
  }

  /** Removes content unless it is used. */
  async function removeContent(content: Content, buildsInUse: RemoveUnusedOptions['buildsInUse']): Promise<boolean> {
    const { path, last_use } = content;
    // A server that was given the directory before the removal began is in the database, until it has ended.
    if (mayBeInUse(content, await buildsInUse()) || lastUseOf(path) > last_use) return false;
    await discard(path);
    last_uses.delete(path);
    return true;
  }

  return {
    use,
    /** Records that there was no space for a build, so that unused ones are removed soon. */
    noteShortage(): void {
      is_short = true;
      notifyShortage();
    },
    /** Sets the listener for shortages. */
    setShortageListener(listener: () => void): void {
      notifyShortage = listener;
    },
    /**
     * Removes the content that was last used before a given time and that no server uses. If the disk is short of space,
     * also content that was used later, the least recently used first.
     */
    async removeUnused({ before, buildsInUse }: RemoveUnusedOptions): Promise<RemovedBuild[]> {
      const was_short = is_short;
      is_short = false;
      const in_use = await buildsInUse();
      const removed: RemovedBuild[] = [];
      for (const content of await listContents()) {
        const { build_id, path, last_use, is_latest } = content;
        if (mayBeInUse(content, in_use)) {
          // The time of earlier content stays, because it says which servers may use it.
          if (is_latest) await use(path);
          continue;
        }
        const now = clock.now().getTime();
        const is_recent = now - last_use < RECENT_MS;
        const is_old = last_use < before.getTime();
        if (!is_old && (is_recent || !(was_short || (await space.isLow())))) continue;
        const removal = removeContent(content, buildsInUse);
        removals.set(path, removal);
        try {
          if (await removal) removed.push({ build_id, unused_for_ms: now - last_use });
        } finally {
          removals.delete(path);
        }
      }
      return removed;
    },
  };
}

/**
 * Returns whether a server may use content: the latest of a build in use, or content that was used after the oldest server
 * of the build was created.
 */
function mayBeInUse({ build_id, last_use, is_latest }: Content, in_use: BuildsInUse): boolean {
  const oldest_server = in_use.get(build_id);
  if (oldest_server === undefined) return false;
  return is_latest || last_use >= oldest_server.getTime() - CLOCK_SKEW_MAX_MS;
}

/** Lists folders, without those of builds that are being unpacked or removed: their names have a dot. */
async function listFolders(directory: string): Promise<string[]> {
  const entries = (await readdir(directory, { withFileTypes: true }).catch(ignoreMissing)) ?? [];
  return entries.flatMap((entry) => (entry.isDirectory() && !entry.name.includes('.') ? [entry.name] : []));
}

function ignoreMissing(error: unknown): undefined {
  if (!hasErrorCode(error, 'ENOENT')) throw error;
}
