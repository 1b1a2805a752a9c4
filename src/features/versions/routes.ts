import { route } from '../../platform/http/route.ts';
import { Empty, ValidationErrors } from '../../platform/http/shapes.ts';
import { TIERS } from './tiers.ts';
import type { Versions } from './versions.ts';
import * as wire from './wire.ts';

const VERSIONS = '/cloud/games/:game_id/versions';

export function versionRoutes(versions: Versions) {
  return [
    route(
      'GET',
      '/cloud/region-tiers',
      {
        operation: 'listRegionTiers',
        summary: 'Lists the tiers with their resources.',
        allow: 'anyone',
        response: wire.TiersAnswer,
      },
      async () => ({ tiers: [...TIERS].map(wire.toTier) }),
    ),
    route(
      'POST',
      VERSIONS,
      {
        operation: 'createVersion',
        recorded: ['display_name'],
        summary: 'Creates a version of a game. It never changes; move namespaces to another version instead.',
        allow: ['identity', 'cloud'],
        access: 'write',
        body: wire.CreateVersionBody,
        response: wire.CreateVersionAnswer,
        errors: ['GAME_NOT_FOUND', 'VALIDATION_ERROR', 'FEATURE_DISABLED', 'GAME_TOO_MANY_VERSIONS'],
      },
      async ({ params, body }) => {
        const { version_id } = await versions.create(params.game_id, body);
        return { version_id };
      },
    ),
    route(
      'POST',
      `${VERSIONS}/validate`,
      {
        operation: 'validateVersion',
        summary: 'Checks a version without creating it.',
        allow: ['identity', 'cloud'],
        access: 'read',
        body: wire.CreateVersionBody,
        response: ValidationErrors,
        errors: ['GAME_NOT_FOUND', 'FEATURE_DISABLED'],
      },
      async ({ params, body }) => ({ errors: await versions.validate(params.game_id, body) }),
    ),
    route(
      'POST',
      `${VERSIONS}/reserve-name`,
      {
        operation: 'reserveVersionName',
        recorded: ['version_display_name'],
        summary: 'Reserves a name for the next version: the day in UTC and a number that no other call gets.',
        allow: ['identity', 'cloud'],
        access: 'write',
        body: Empty,
        response: wire.ReserveNameAnswer,
        errors: ['GAME_NOT_FOUND'],
      },
      async ({ params }) => ({ version_display_name: await versions.reserveName(params.game_id) }),
    ),
    route(
      'GET',
      `${VERSIONS}/:version_id`,
      {
        operation: 'getVersion',
        summary: 'Returns a version with its configuration.',
        allow: ['identity', 'cloud'],
        access: 'read',
        response: wire.VersionAnswer,
        errors: ['GAME_NOT_FOUND', 'VERSION_NOT_FOUND'],
      },
      async ({ params }) => ({ version: wire.toVersion(await versions.get(params)) }),
    ),
  ];
}
