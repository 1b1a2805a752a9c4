import { existsSync } from 'node:fs';
import { chmod, mkdir, readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '../../platform/clock.ts';
import type { Database } from '../../platform/database/database.ts';
import { type DiskSpace, UNLIMITED_SPACE } from '../../platform/disk-space.ts';
import { syncPath, syncTree } from '../../platform/durable.ts';
import { assert, ServiceError } from '../../platform/errors.ts';
import type { Watchable } from '../../platform/watch/views.ts';
import { TAGS_MAX } from '../tags.ts';
import { topics } from '../topics.ts';
import type { Uploads } from '../uploads/uploads.ts';
import type { PresignedRequest } from '../uploads/wire.ts';
import { checkProgram } from './program.ts';
import { checkBuild, scriptNameOf } from './rules.ts';
import * as store from './store.ts';
import type { BuildKind, BuildRow } from './tables.ts';
import { unpackArchive } from './unpack.ts';
import type { PrepareBuild } from './wire.ts';

export type { BuildKind } from './tables.ts';

/** Suffix of the directory into which a build is being unpacked. */
const UNFINISHED = '.unfinished';

/** A build that a runtime can start: files on this machine. */
export interface UnpackedBuild {
  kind: BuildKind;
  /** Absolute, without symbolic links. */
  directory: string;
  /** For an archive, the program and its first arguments. For a script, its file name. */
  command: string[];
}

export interface BuildsDependencies {
  database: Database;
  clock: Clock;
  uploads: Uploads;
  /** The directory of unpacked builds on this machine. */
  directory: string;
  space?: DiskSpace;
  /** Kinds that the configured runtimes can run. */
  kinds: readonly BuildKind[];
}

export type Builds = ReturnType<typeof createBuilds>;

/** Creates the use cases of builds: game servers as their developers uploaded them. */
export function createBuilds({
  database,
  clock,
  uploads,
  directory,
  space = UNLIMITED_SPACE,
  kinds,
}: BuildsDependencies) {
  const unpacking = new Map<string, Promise<void>>();
  let swept: Promise<void> | undefined;

  const folderOf = ({ build_id }: Pick<BuildRow, 'build_id'>) => join(directory, build_id);

  /** Returns the directory of a build's current content. Earlier content has another directory. */
  async function contentDirectoryOf(build: BuildRow): Promise<string> {
    return join(folderOf(build), await uploads.contentId(build.upload_id, 0));
  }

  /** Unpacks a build once on this machine and returns its directory, which exists only once it is complete. */
  async function ensureUnpacked(build: BuildRow): Promise<string> {
    const content_directory = await contentDirectoryOf(build);
    if (existsSync(content_directory)) return content_directory;
    const under_way = unpacking.get(content_directory) ?? unpack(build, content_directory);
    unpacking.set(content_directory, under_way);
    try {
      await under_way;
    } finally {
      unpacking.delete(content_directory);
    }
    return content_directory;
  }

  /** Unpacks a build into an unfinished directory, and renames that once the files are complete and on disk. */
  async function unpack(build: BuildRow, content_directory: string): Promise<void> {
    swept ??= sweep().catch((error: unknown) => {
      swept = undefined;
      throw error;
    });
    await swept;
    await space.assertRoom(0);
    const folder = folderOf(build);
    const unfinished = `${folder}.${crypto.randomUUID()}${UNFINISHED}`;
    await mkdir(unfinished, { mode: 0o755 });
    try {
      const file = await uploads.read(build.upload_id, 0);
      if (build.kind === 'archive') await unpackArchive(file, unfinished, { takeRoom: space.createMeter() });
      else await Bun.write(join(unfinished, build.file_name), new Response(file));
      if (build.kind === 'archive') await checkProgram(unfinished, build.command);
      // Refuses a mix of two files: the file was uploaded again while it was unpacked.
      if ((await contentDirectoryOf(build)) !== content_directory) throw new ServiceError('UPLOAD_BUSY', {});
      // The umask may be stricter, and game servers may run as another user.
      await chmod(unfinished, 0o755);
      await syncTree(unfinished);
      // Game servers enter the folder but must not list it, whatever the umask. An existing one may have running servers.
      const is_new = (await mkdir(folder, { recursive: true })) !== undefined;
      if (is_new) await chmod(folder, 0o711);
      await rename(unfinished, content_directory);
      await syncPath(folder);
      await syncPath(directory);
    } catch (error) {
      await remove(unfinished);
      throw error;
    }
  }

  /** Removes directories of earlier content. Only for a build that is not complete, so no server runs from it. */
  async function removeEarlier(build: BuildRow, content_directory: string): Promise<void> {
    const folder = folderOf(build);
    const contents = (await readdir(folder)).map((name) => join(folder, name));
    await Promise.all(contents.filter((content) => content !== content_directory).map(remove));
  }

  /**
   * Removes the unfinished directories that a killed process left. Runs before this process unpacks anything; no other
   * process uses this data directory.
   */
  async function sweep(): Promise<void> {
    for (const name of await readdir(directory)) {
      if (name.endsWith(UNFINISHED)) await remove(join(directory, name));
    }
  }

  uploads.setPurpose('build', {
    async inspect(upload_id) {
      const build = await store.selectBuildByUpload(database.queries, upload_id);
      assert(build, 'an upload for a build has its build');
      await removeEarlier(build, await ensureUnpacked(build));
    },
    async complete(tx, upload_id, now) {
      const build = await store.selectBuildByUpload(tx, upload_id);
      assert(build, 'an upload for a build has its build');
      await store.setComplete(tx, build, now);
    },
    async discard(upload_id) {
      const build = await store.selectBuildByUpload(database.queries, upload_id);
      if (build) await remove(folderOf(build));
    },
  });

  async function get(scope: store.BuildScope, build_id: string): Promise<BuildRow> {
    const build = await store.selectBuild(database.queries, scope, build_id);
    if (!build) throw new ServiceError('BUILDS_BUILD_NOT_FOUND', {});
    return build;
  }

  /** A build within a scope, if it has all of the tags. Watchable. */
  const one: Watchable<store.BuildScope & { build_id: string; tags: Record<string, string> }, BuildRow> = {
    topics: ({ game_id }) => [topics.buildsOf(game_id)],
    async read({ build_id, tags, ...scope }) {
      const build = await get(scope, build_id);
      const has_all = Object.entries(tags).every(([name, value]) => build.tags[name] === value);
      if (!has_all) throw new ServiceError('BUILDS_BUILD_NOT_FOUND', {});
      return build;
    },
  };

  /** The builds within a scope that have all of the tags. Watchable. */
  const many: Watchable<store.BuildScope & { tags: Record<string, string> }, BuildRow[]> = {
    topics: ({ game_id }) => [topics.buildsOf(game_id)],
    read: ({ tags, ...scope }) => store.selectBuilds(database.queries, scope, tags),
  };

  return {
    get,
    one,
    many,
    /** Returns which of the builds belong to the game and are complete. */
    completeAmong: (game_id: string, build_ids: string[]) => store.selectComplete(database.queries, game_id, build_ids),
    /** Creates a build. Returns it with the requests that upload its file. */
    async prepare(
      scope: store.BuildScope,
      wanted: PrepareBuild,
    ): Promise<{ build: BuildRow; presigned_requests: PresignedRequest[] }> {
      const kind = checkBuild(wanted, kinds);
      return await database.transact(async (tx) => {
        const { upload_id, presigned_requests } = await uploads.prepare(
          tx,
          { game_id: scope.game_id, kind: 'build', is_multipart: wanted.multipart_upload ?? false },
          [wanted.image_file],
        );
        const build: BuildRow = {
          build_id: crypto.randomUUID(),
          game_id: scope.game_id,
          namespace_id: scope.namespace_id ?? null,
          upload_id,
          name: wanted.name,
          kind,
          image_tag: wanted.image_tag ?? null,
          file_name: scriptNameOf(wanted.image_file.path),
          command: wanted.command ?? [],
          tags: {},
          content_length: wanted.image_file.content_length,
          create_ts: clock.now(),
          complete_ts: null,
        };
        await store.insertBuild(tx, build);
        return { build, presigned_requests };
      });
    },
    async complete(scope: store.BuildScope, build_id: string): Promise<void> {
      await uploads.complete((await get(scope, build_id)).upload_id);
    },
    /**
     * Merges tags into a build's and removes those that are null. An exclusive pair is removed from the other builds of
     * the environment.
     */
    async patchTags(scope: Required<store.BuildScope>, build_id: string, patch: store.TagsPatch): Promise<void> {
      const missing = patch.exclusive_tags.find((key) => !Object.hasOwn(patch.tags, key));
      if (missing !== undefined) throw new ServiceError('BUILDS_TAGS_MISSING_EXCLUSIVE_KEY', { key: missing });
      const removed = patch.exclusive_tags.find((key) => patch.tags[key] === null);
      if (removed !== undefined) throw new ServiceError('BUILDS_TAGS_NULL_EXCLUSIVE_KEY', { key: removed });
      await database.transact(async (tx) => {
        // Rolls back if there is no such build, so that the other builds keep their tags.
        const build = await store.mergeTags(tx, scope, build_id, patch);
        if (!build) throw new ServiceError('BUILDS_BUILD_NOT_FOUND', {});
        const count = Object.keys(build.tags).length;
        const is_adding = Object.values(patch.tags).some((tag) => tag !== null);
        if (is_adding && count > TAGS_MAX) {
          throw new ServiceError('BUILDS_TOO_MANY_TAGS', { count: String(count), count_max: String(TAGS_MAX) });
        }
      });
    },
    /** Returns the build's files on this machine, after downloading and unpacking them if needed. */
    async unpacked(scope: store.BuildScope, build_id: string): Promise<UnpackedBuild> {
      const build = await get(scope, build_id);
      const command = build.kind === 'archive' ? build.command : [build.file_name];
      return { kind: build.kind, directory: await ensureUnpacked(build), command };
    },
  };
}

const remove = (path: string) => rm(path, { recursive: true, force: true });
