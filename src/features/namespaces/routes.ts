import { Type } from '@sinclair/typebox';
import { toMoment } from '../../platform/database/moments.ts';
import { readMoment } from '../../platform/http/moments.ts';
import { route } from '../../platform/http/route.ts';
import { Empty, ValidationErrors } from '../../platform/http/shapes.ts';
import type { Caller } from '../../platform/tokens/caller.ts';
import type { TokenStamp } from '../../platform/tokens/tokens.ts';
import type { Namespaces } from './namespaces.ts';
import * as wire from './wire.ts';

const NAMESPACES = '/cloud/games/:game_id/namespaces';
const NAMESPACE = '/cloud/games/:game_id/namespaces/:namespace_id';
const NOT_FOUND = ['GAME_NOT_FOUND', 'GAME_ENVIRONMENT_NOT_FOUND'] as const;

export interface NamespaceRoutesDependencies {
  namespaces: Namespaces;
  sites_domain: string;
  /** Authorizes a caller to issue a token of the game, and returns the token's id and time. */
  authorizeTokenIssue(caller: Caller, game_id: string): Promise<TokenStamp>;
}

export function namespaceRoutes({ namespaces, sites_domain, authorizeTokenIssue }: NamespaceRoutesDependencies) {
  return [
    route(
      'POST',
      NAMESPACES,
      {
        operation: 'createNamespace',
        recorded: ['display_name', 'name_id'],
        summary: 'Creates a namespace of a game, on one of its versions.',
        allow: ['identity', 'cloud'],
        access: 'write',
        body: wire.CreateNamespaceBody,
        response: wire.CreateNamespaceAnswer,
        errors: ['GAME_NOT_FOUND', 'VERSION_NOT_FOUND', 'VALIDATION_ERROR', 'GAME_TOO_MANY_NAMESPACES'],
      },
      async ({ params, body }) => {
        const { display_name, name_id, version_id } = body;
        return {
          namespace_id: await namespaces.create({
            ...params,
            display_name,
            name_id,
            version_id: version_id.toLowerCase(),
          }),
        };
      },
    ),
    route(
      'POST',
      `${NAMESPACES}/validate`,
      {
        operation: 'validateNamespace',
        summary: 'Checks the names of a namespace without creating it.',
        allow: ['identity', 'cloud'],
        access: 'read',
        body: wire.NamespaceNames,
        response: ValidationErrors,
        errors: ['GAME_NOT_FOUND'],
      },
      async ({ params, body }) => ({ errors: await namespaces.validate(params.game_id, body) }),
    ),
    route(
      'GET',
      NAMESPACE,
      {
        operation: 'getNamespace',
        summary: 'Returns a namespace with its settings.',
        allow: ['identity', 'cloud'],
        access: 'read',
        response: wire.NamespaceAnswer,
        errors: NOT_FOUND,
      },
      async ({ params }) => {
        const [row, cdn] = await Promise.all([namespaces.get(params), namespaces.cdn.domainsAndUsersOf(params)]);
        return { namespace: wire.toNamespace(row, cdn, sites_domain) };
      },
    ),
    route(
      'PUT',
      `${NAMESPACE}/version`,
      {
        operation: 'setNamespaceVersion',
        summary: 'Moves a namespace to another version. New lobbies use that version.',
        allow: ['identity', 'cloud'],
        access: 'write',
        body: wire.UpdateVersionBody,
        response: Empty,
        errors: [...NOT_FOUND, 'VERSION_NOT_FOUND'],
      },
      async ({ params, body }) => {
        await namespaces.setVersion(params, body.version_id.toLowerCase());
        return {};
      },
    ),
    route(
      'GET',
      `${NAMESPACE}/version-history`,
      {
        operation: 'listNamespaceVersions',
        summary: 'Lists the versions that a namespace has had, latest first.',
        allow: ['identity', 'cloud'],
        access: 'read',
        query: wire.VersionHistoryQuery,
        response: wire.VersionHistoryAnswer,
        errors: NOT_FOUND,
      },
      async ({ params, query }) => {
        const anchor = readMoment('anchor', query.anchor);
        const before = anchor === undefined ? undefined : toMoment(anchor);
        const history = await namespaces.versionHistory(params, { before, limit: query.limit });
        return { versions: history.map(wire.toDeployment) };
      },
    ),
    route(
      'POST',
      `${NAMESPACE}/tokens/public`,
      {
        operation: 'createPublicToken',
        summary: "Creates a token for a game's clients.",
        allow: ['identity', 'cloud'],
        access: 'write',
        body: Empty,
        response: wire.TokenAnswer,
        errors: NOT_FOUND,
      },
      async ({ params }) => ({ token: await namespaces.createPublicToken(params) }),
    ),
    route(
      'POST',
      `${NAMESPACE}/tokens/development`,
      {
        operation: 'createDevelopmentToken',
        recorded: ['hostname'],
        summary: 'Creates a token for which the matchmaker answers as if a lobby ran at the given host name and ports.',
        allow: ['identity', 'cloud'],
        access: 'write',
        body: wire.DevelopmentTokenBody,
        response: wire.TokenAnswer,
        errors: [...NOT_FOUND, 'CLOUD_INVALID_CONFIG', 'VALIDATION_ERROR'],
      },
      async ({ params, body }) => ({ token: await namespaces.createDevelopmentToken(params, body) }),
    ),
    route(
      'POST',
      '/games/:game_id/environments/:environment_id/tokens/service',
      {
        operation: 'createServiceToken',
        summary: "Creates a token for a developer's back end, for the servers and builds of this environment.",
        allow: ['identity', 'cloud'],
        access: 'write',
        body: Type.Object({}),
        response: wire.TokenAnswer,
        errors: NOT_FOUND,
      },
      async (call) => {
        const { game_id, environment_id } = call.params;
        const stamp = await authorizeTokenIssue(call.caller, game_id);
        call.recordDetails({ token_issued_ts: stamp.at.toISOString() });
        return { token: await namespaces.createServiceToken({ game_id, namespace_id: environment_id }, stamp) };
      },
    ),
  ];
}
