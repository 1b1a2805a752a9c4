import { existsSync } from 'node:fs';
import { chmod, mkdir, readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '../../platform/clock.ts';
import type { Database } from '../../platform/database/database.ts';
import { assert, ServiceError } from '../../platform/errors.ts';
import type { Watchable } from '../../platform/watch/sights.ts';
import { topics } from '../topics.ts';
import type { Uploads } from '../uploads/uploads.ts';
import type { PresignedRequest } from '../uploads/wire.ts';
import { syncPath, syncTree } from './durable.ts';
import { checkProgram } from './program.ts';
import { checkBuild, kindOf, scriptNameOf } from './rules.ts';
import * as store from './store.ts';
import type { BuildKind, BuildRow } from './tables.ts';
import { unpackArchive } from './unpack.ts';
import type { PrepareBuild } from './wire.ts';

export type { BuildKind } from './tables.ts';

/** How the names of directories end that are not yet builds. */
const UNFINISHED = '.unfinished';

/** A build as a runtime starts it: files on this machine. */
export interface UnpackedBuild {
  kind: BuildKind;
  /** Absolute; nothing in it is a link. */
  directory: string;
  /** Of an archive: what to start, and the first arguments. Of a script: its file's name. */
  command: string[];
}

interface BuildsDependencies {
  database: Database;
  clock: Clock;
  uploads: Uploads;
  /** Where builds are unpacked on this machine. */
  directory: string;
  /** The kinds that the configured runtimes can run. */
  kinds: readonly BuildKind[];
}

export type Builds = ReturnType<typeof createBuilds>;

/** Game servers as their developers uploaded them. */
export function createBuilds({ database, clock, uploads, directory, kinds }: BuildsDependencies) {
  const unpacking = new Map<string, Promise<void>>();
  let swept: Promise<void> | undefined;

  const placeOf = ({ build_id }: Pick<BuildRow, 'build_id'>) => join(directory, build_id);

  /** Puts a build's files where they are started from, once for this machine; a half-unpacked one is never seen. */
  async function ensureUnpacked(build: BuildRow): Promise<void> {
    const place = placeOf(build);
    if (existsSync(place)) return;
    const under_way = unpacking.get(build.build_id) ?? unpack(build, place);
    unpacking.set(build.build_id, under_way);
    try {
      await under_way;
    } finally {
      unpacking.delete(build.build_id);
    }
  }

  /** A build that has its own name is whole: written beside it, then to the disk, and only then renamed. */
  async function unpack(build: BuildRow, place: string): Promise<void> {
    swept ??= sweep().catch((error: unknown) => {
      swept = undefined;
      throw error;
    });
    await swept;
    const unfinished = `${place}.${crypto.randomUUID()}${UNFINISHED}`;
    await mkdir(unfinished, { mode: 0o755 });
    try {
      const file = await uploads.read(build.upload_id, 0);
      if (build.kind === 'archive') await unpackArchive(file, unfinished);
      else await Bun.write(join(unfinished, build.file_name), new Response(file));
      if (build.kind === 'archive') await checkProgram(unfinished, build.command);
      // Whatever our umask is: game servers may run as another user.
      await chmod(unfinished, 0o755);
      await syncTree(unfinished);
      await rename(unfinished, place);
      await syncPath(directory);
    } catch (error) {
      await remove(unfinished);
      throw error;
    }
  }

  /** Removes what a killed process had half unpacked. Nobody else unpacks into our data directory, and we have not begun. */
  async function sweep(): Promise<void> {
    for (const name of await readdir(directory)) {
      if (name.endsWith(UNFINISHED)) await remove(join(directory, name));
    }
  }

  uploads.setPurpose('build', {
    async inspect(upload_id) {
      const build = await store.selectBuildByUpload(database.queries, upload_id);
      assert(build, 'an upload for a build has its build');
      await ensureUnpacked(build);
    },
    async complete(tx, upload_id, now) {
      const build = await store.selectBuildByUpload(tx, upload_id);
      assert(build, 'an upload for a build has its build');
      await store.setComplete(tx, build, now);
    },
    async discard(upload_id) {
      const build = await store.selectBuildByUpload(database.queries, upload_id);
      if (build) await remove(placeOf(build));
    },
  });

  async function get(scope: store.BuildScope, build_id: string): Promise<BuildRow> {
    const build = await store.selectBuild(database.queries, scope, build_id);
    if (!build) throw new ServiceError('BUILDS_BUILD_NOT_FOUND', {});
    return build;
  }

  /** A build within a scope. Watchable. */
  const one: Watchable<store.BuildScope & { build_id: string }, BuildRow> = {
    topics: ({ game_id }) => [topics.buildsOf(game_id)],
    read: ({ build_id, ...scope }) => get(scope, build_id),
  };

  /** Those within a scope that have all of the tags. Watchable. */
  const many: Watchable<store.BuildScope & { tags: Record<string, string> }, BuildRow[]> = {
    topics: ({ game_id }) => [topics.buildsOf(game_id)],
    read: ({ tags, ...scope }) => store.selectBuilds(database.queries, scope, tags),
  };

  return {
    get,
    one,
    many,
    /** Those of the builds that are the game's and can be run. */
    completeAmong: (game_id: string, build_ids: string[]) => store.selectComplete(database.queries, game_id, build_ids),
    /** Announces a build. Gives it with the requests that send its file. */
    async prepare(
      scope: store.BuildScope,
      wanted: PrepareBuild,
    ): Promise<{ build: BuildRow; presigned_requests: PresignedRequest[] }> {
      checkBuild(wanted, kinds);
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
          kind: kindOf(wanted),
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
    /** Merges tags into a build's; a pair that is exclusive is taken from the other builds of the environment. */
    async patchTags(
      scope: Required<store.BuildScope>,
      build_id: string,
      patch: { tags: Record<string, string>; exclusive_tags: string[] },
    ): Promise<void> {
      const missing = patch.exclusive_tags.find((key) => !Object.hasOwn(patch.tags, key));
      if (missing !== undefined) throw new ServiceError('BUILDS_TAGS_MISSING_EXCLUSIVE_KEY', { key: missing });
      await database.transact(async (tx) => {
        // Within the transaction: the other builds keep their tags when there is no such build.
        if (!(await store.mergeTags(tx, scope, build_id, patch))) throw new ServiceError('BUILDS_BUILD_NOT_FOUND', {});
      });
    },
    /** The build's files on this machine, fetched and unpacked if need be. */
    async unpacked(scope: store.BuildScope, build_id: string): Promise<UnpackedBuild> {
      const build = await get(scope, build_id);
      await ensureUnpacked(build);
      const command = build.kind === 'archive' ? build.command : [build.file_name];
      return { kind: build.kind, directory: placeOf(build), command };
    },
  };
}

const remove = (path: string) => rm(path, { recursive: true, force: true });
