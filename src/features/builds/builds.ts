import type { Clock } from '../../platform/clock.ts';
import type { Database } from '../../platform/database/database.ts';
import { assert, ServiceError } from '../../platform/errors.ts';
import type { DiskSpace } from '../../platform/system/disk-space.ts';
import type { Watchable } from '../../platform/watch/views.ts';
import { TAGS_MAX } from '../tags.ts';
import { topics } from '../topics.ts';
import type { Uploads } from '../uploads/uploads.ts';
import type { PresignedRequest } from '../uploads/wire.ts';
import type { BaseImage } from './containers/base-image.ts';
import { type AvailableKinds, checkBuild, runtimeKindOf, scriptNameOf } from './rules.ts';
import * as store from './store.ts';
import type { BuildKind, BuildRow } from './tables.ts';
import { openUnpackedBuilds } from './unpacked-builds.ts';
import type { PrepareBuild } from './wire.ts';

export { type BaseImage, openBaseImage } from './containers/base-image.ts';
export type { BuildKind } from './tables.ts';

/** A build that a runtime can start: files on this machine. */
export interface UnpackedBuild {
  game_id: string;
  kind: BuildKind;
  /**
   * The SHA-256 of the uploaded file in hexadecimal. Undefined for an archive or a script that was unpacked before digests
   * were recorded.
   */
  sha256: string | undefined;
  /**
   * Absolute, without symbolic links. For an image or a bundle, an OCI bundle: `rootfs/`, and `config.json`, whose `process`
   * has the program to run (`args`, `env`, `cwd`, and `user` in numbers).
   */
  directory: string;
  /**
   * For an archive, the program and its first arguments. For a script, its file name. For an image or a bundle, the
   * arguments that replace its own; empty if the build has no command.
   */
  command: string[];
}

export interface BuildsDependencies {
  database: Database;
  clock: Clock;
  uploads: Uploads;
  /** The directory of unpacked builds on this machine. */
  directory: string;
  space?: DiskSpace;
  /** What the configured runtimes can run. */
  available: AvailableKinds;
  /** The image on which archives run in containers. */
  base_image?: BaseImage | undefined;
}

export type Builds = ReturnType<typeof createBuilds>;

/** Creates the use cases of builds: game servers as their developers uploaded them. */
export function createBuilds(dependencies: BuildsDependencies) {
  const { database, clock, uploads, base_image } = dependencies;
  const { kinds, why_missing } = dependencies.available;
  const available = { kinds, why_missing, has_base_image: base_image !== undefined };
  const unpacked_builds = openUnpackedBuilds({ ...dependencies, available });

  uploads.setPurpose('build', {
    async inspect(upload_id) {
      const build = await store.selectBuildByUpload(database.queries, upload_id);
      assert(build, 'an upload for a build has its build');
      const unpacked = await unpacked_builds.ensure(build);
      await unpacked_builds.removeEarlier(build, unpacked.directory);
    },
    async complete(tx, upload_id, now) {
      const build = await store.selectBuildByUpload(tx, upload_id);
      assert(build, 'an upload for a build has its build');
      await store.setComplete(tx, build, now);
    },
    async discard(upload_id) {
      const build = await store.selectBuildByUpload(database.queries, upload_id);
      if (build) await unpacked_builds.remove(build);
    },
  });

  async function get(scope: store.BuildScope, build_id: string): Promise<BuildRow> {
    const build = await store.selectBuild(database.queries, scope, build_id);
    if (!build) throw new ServiceError('BUILDS_BUILD_NOT_FOUND', {});
    return build;
  }

  /** A build within a scope. Watchable. */
  const build_view: Watchable<store.BuildScope & { build_id: string }, BuildRow> = {
    topics: ({ game_id }) => [topics.buildsOf(game_id)],
    read: ({ build_id, ...scope }) => get(scope, build_id),
  };

  /** The builds within a scope that have all of the tags. Watchable. */
  const list: Watchable<store.BuildScope & { tags: Record<string, string> }, BuildRow[]> = {
    topics: ({ game_id }) => [topics.buildsOf(game_id)],
    read: ({ tags, ...scope }) => store.selectBuilds(database.queries, scope, tags),
  };

  return {
    get,
    /** Returns the kind by which a runtime runs a build. */
    kindOf: async (scope: store.BuildScope, build_id: string): Promise<BuildKind> =>
      runtimeKindOf((await get(scope, build_id)).kind),
    build: build_view,
    list,
    /** Returns which of the builds belong to the game and are complete. */
    completeAmong: (game_id: string, build_ids: string[]) => store.selectComplete(database.queries, game_id, build_ids),
    /** Creates a build. Returns it with the requests that upload its file. */
    async prepare(
      scope: store.BuildScope,
      wanted: PrepareBuild,
    ): Promise<{ build: BuildRow; presigned_requests: PresignedRequest[] }> {
      const kind = checkBuild(wanted, available);
      const { path, content_type, content_length } = wanted.image_file;
      const { build, unsent } = await database.transact(async (tx) => {
        const prepared = await uploads.prepare(
          tx,
          {
            game_id: scope.game_id,
            kind: 'build',
            is_multipart: wanted.multipart_upload ?? false,
            part_bytes: wanted.part_length ?? null,
          },
          [{ path, content_type, content_length }],
        );
        const created: BuildRow = {
          build_id: crypto.randomUUID(),
          game_id: scope.game_id,
          namespace_id: scope.namespace_id ?? null,
          upload_id: prepared.upload_id,
          name: wanted.name,
          kind,
          image_tag: wanted.image_tag ?? null,
          file_name: scriptNameOf(path),
          command: wanted.command ?? [],
          tags: {},
          content_length,
          sha256: null,
          create_ts: clock.now(),
          complete_ts: null,
        };
        await store.insertBuild(tx, created);
        return { build: created, unsent: prepared.unsent };
      });
      return { build, presigned_requests: await uploads.presign(unsent) };
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
    /**
     * Returns whether any files of the build are on this machine. They may be of an earlier base image; then the build is
     * unpacked again when it is used.
     */
    isUnpacked: unpacked_builds.has,
    /** Removes the files of builds that no server of this machine uses. They are unpacked again when needed. */
    removeUnused: unpacked_builds.removeUnused,
    /** Sets the listener for when there is no space for the files of a build. */
    setShortageListener: unpacked_builds.setShortageListener,
    /** Returns the build's files on this machine, after downloading and unpacking them if needed. */
    async ensureUnpacked(scope: store.BuildScope, build_id: string): Promise<UnpackedBuild> {
      const build = await get(scope, build_id);
      const { game_id } = build;
      const command = build.kind === 'javascript' ? [build.file_name] : build.command;
      return { game_id, kind: runtimeKindOf(build.kind), ...(await unpacked_builds.ensure(build)), command };
    },
  };
}
