import { route, watched } from '../../platform/http/route.ts';
import { Empty } from '../../platform/http/shapes.ts';
import type { Transfers } from '../../platform/http/transfers.ts';
import { averagePerMinute } from '../../platform/limits/limit.ts';
import { watchState } from '../../platform/watch/views.ts';
import { parseTags, refuseLongTags, TagsQuery, UnreadTagsQuery } from '../tags.ts';
import type { Builds } from './builds.ts';
import { type BuildFiles, FILE_PATH } from './files.ts';
import * as wire from './wire.ts';

const BUILDS = '/games/:game_id/environments/:environment_id/builds';
const GAME_BUILDS = '/cloud/games/:game_id/builds';
const ENVIRONMENT_ERRORS = ['GAME_NOT_FOUND', 'GAME_ENVIRONMENT_NOT_FOUND'] as const;
const PREPARE_ERRORS = [
  'BUILDS_BUILD_INVALID',
  'BUILDS_KIND_NOT_AVAILABLE',
  'UPLOAD_INVALID',
  'UPLOAD_TOO_LARGE',
  'VALIDATION_ERROR',
] as const;
const COMPLETE_ERRORS = [
  'BUILDS_BUILD_NOT_FOUND',
  'BUILDS_BUILD_INVALID',
  'BUILDS_KIND_NOT_AVAILABLE',
  'UPLOAD_BUSY',
  'UPLOAD_INCOMPLETE',
  'OBJECTS_UNAVAILABLE',
] as const;

/** Limits reads per token, like those of servers. */
const READING = averagePerMinute('builds-read', 60_000);

/** Limits downloads by address. The machines of a cluster may share one. */
const DOWNLOADING = averagePerMinute('build-files', 6_000, { counted: 'here' });

export function buildRoutes(builds: Builds) {
  const inEnvironment = ({ game_id, environment_id }: { game_id: string; environment_id: string }) => ({
    game_id,
    namespace_id: environment_id,
  });
  return [
    watched(
      BUILDS,
      {
        operation: 'listBuilds',
        summary: 'Lists the builds of an environment, newest first, 1,000 at most.',
        allow: ['identity', 'cloud', 'service'],
        access: 'read',
        limit: READING,
        query: TagsQuery,
        response: wire.BuildsAnswer,
        errors: ENVIRONMENT_ERRORS,
      },
      ({ params, query }) =>
        watchState(builds.list, { ...inEnvironment(params), tags: parseTags(query.tags_json) }, (rows) => ({
          builds: rows.map(wire.toBuild),
        })),
    ),
    watched(
      `${BUILDS}/:build_id`,
      {
        operation: 'getBuild',
        summary: 'Returns a build of an environment.',
        allow: ['identity', 'cloud', 'service'],
        access: 'read',
        limit: READING,
        query: UnreadTagsQuery,
        response: wire.BuildAnswer,
        errors: [...ENVIRONMENT_ERRORS, 'BUILDS_BUILD_NOT_FOUND'],
      },
      ({ params: { build_id, ...environment } }) =>
        watchState(builds.build, { ...inEnvironment(environment), build_id }, (row) => ({ build: wire.toBuild(row) })),
    ),
    route(
      'POST',
      `${BUILDS}/prepare`,
      {
        operation: 'prepareBuild',
        recorded: ['name', 'kind', 'build'],
        summary: 'Prepares a build of an environment. The answer says where to send its file.',
        allow: ['identity', 'cloud'],
        access: 'write',
        body: wire.PrepareBuildBody,
        response: wire.PrepareBuildAnswer,
        errors: [...ENVIRONMENT_ERRORS, ...PREPARE_ERRORS],
      },
      async ({ params, body }) => {
        const { build, presigned_requests } = await builds.prepare(inEnvironment(params), body);
        return { build: build.build_id, ...wire.toImageRequests(presigned_requests, body.multipart_upload ?? false) };
      },
    ),
    route(
      'POST',
      `${BUILDS}/:build_id/complete`,
      {
        operation: 'completeBuild',
        summary: 'Checks a build whose file was uploaded, and completes it. A complete build can be used.',
        allow: ['identity', 'cloud'],
        access: 'write',
        response: Empty,
        errors: [...ENVIRONMENT_ERRORS, ...COMPLETE_ERRORS],
      },
      async ({ params }) => {
        await builds.complete(inEnvironment(params), params.build_id);
        return {};
      },
    ),
    route(
      'PATCH',
      `${BUILDS}/:build_id/tags`,
      {
        operation: 'patchBuildTags',
        summary:
          'Adds tags to a build and removes those that are null. An exclusive tag is removed from the other builds of the environment.',
        allow: ['identity', 'cloud'],
        access: 'write',
        body: wire.PatchTagsBody,
        response: Empty,
        errors: [
          ...ENVIRONMENT_ERRORS,
          'BUILDS_BUILD_NOT_FOUND',
          'BUILDS_TAGS_MISSING_EXCLUSIVE_KEY',
          'BUILDS_TAGS_NULL_EXCLUSIVE_KEY',
          'BUILDS_TOO_MANY_TAGS',
        ],
      },
      async ({ params, body }) => {
        refuseLongTags(body.tags);
        const patch = { tags: body.tags, exclusive_tags: body.exclusive_tags ?? [] };
        await builds.patchTags(inEnvironment(params), params.build_id, patch);
        return {};
      },
    ),
    route(
      'POST',
      GAME_BUILDS,
      {
        operation: 'createGameBuild',
        recorded: ['display_name', 'kind'],
        summary: 'Prepares a build of a game, for all of its namespaces. The answer says where to send its file.',
        allow: ['identity', 'cloud'],
        access: 'write',
        body: wire.CreateGameBuildBody,
        response: wire.CreateGameBuildAnswer,
        errors: ['GAME_NOT_FOUND', ...PREPARE_ERRORS],
      },
      async ({ params, body }) => {
        const { build, presigned_requests } = await builds.prepare(params, { ...body, name: body.display_name });
        const { build_id, upload_id } = build;
        return { build_id, upload_id, ...wire.toImageRequests(presigned_requests, body.multipart_upload ?? false) };
      },
    ),
    watched(
      GAME_BUILDS,
      {
        operation: 'listGameBuilds',
        summary: 'Lists the builds of a game, newest first, 1,000 at most.',
        allow: ['identity', 'cloud'],
        access: 'read',
        response: wire.GameBuildsAnswer,
        errors: ['GAME_NOT_FOUND'],
      },
      ({ params }) =>
        watchState(builds.list, { ...params, tags: {} }, (rows) => ({ builds: rows.map(wire.toBuildSummary) })),
    ),
  ];
}

interface FileRoutesDependencies {
  files: BuildFiles;
  transfers: Transfers;
}

export function buildFileRoutes({ files, transfers }: FileRoutesDependencies) {
  return [
    route(
      'GET',
      `${BUILDS}/:build_id/file`,
      {
        operation: 'getBuildFile',
        summary: 'Returns a link to the file of a complete build, as it was uploaded.',
        allow: ['identity', 'cloud'],
        access: 'read',
        response: wire.BuildFileAnswer,
        errors: [...ENVIRONMENT_ERRORS, 'BUILDS_BUILD_NOT_FOUND', 'BUILDS_BUILD_NOT_COMPLETE'],
      },
      async ({ params: { game_id, environment_id: namespace_id, build_id } }) => {
        const { build, url } = await files.fileLink({ game_id, namespace_id }, build_id);
        return wire.toBuildFile(build, url);
      },
    ),
    route(
      'GET',
      FILE_PATH,
      {
        summary: 'Returns the file of a build. The address comes from the request for a link to it.',
        // The signature in the URL authorizes the request.
        allow: 'anyone',
        is_page: true,
        limit: DOWNLOADING,
        errors: [
          'LINK_INVALID',
          'BUILDS_BUILD_NOT_FOUND',
          'BUILDS_BUILD_NOT_COMPLETE',
          'OBJECTS_UNAVAILABLE',
          'TOO_MANY_TRANSFERS',
          'TRANSFERS_BUSY',
        ],
      },
      async ({ request, address }) => {
        const build = await files.linkedBuild(request.url);
        const content = await transfers.download(address, request.signal, () => files.readFile(build));
        return new Response(content, { headers: wire.fileHeaders(build) });
      },
    ),
  ];
}
