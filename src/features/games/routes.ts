import { route, watched } from '../../platform/http/route.ts';
import { Empty, ValidationErrors } from '../../platform/http/shapes.ts';
import { watchState } from '../../platform/watch/views.ts';
import { TokenAnswer } from '../namespaces/wire.ts';
import type { Games } from './games.ts';
import * as wire from './wire.ts';

export function gameRoutes(games: Games) {
  return [
    watched(
      '/cloud/games',
      {
        operation: 'listGames',
        summary: "Lists the games of the caller's groups, and these groups.",
        allow: ['identity', 'cloud'],
        response: wire.GamesAnswer,
      },
      async ({ caller }) => {
        if (caller.kind === 'identity') return watchState(games.gamesOf, caller.identity_id, (list) => list);
        const { game_id, developer_group_id } = await games.get(caller.game_id);
        return watchState(games.gameOfCloud, { game_id, developer_group_id }, (list) => list);
      },
    ),
    route(
      'POST',
      '/cloud/games',
      {
        operation: 'createGame',
        recorded: ['display_name'],
        summary: 'Creates a game of a group, with a first version and the namespaces prod and staging.',
        allow: ['identity'],
        body: wire.CreateGameBody,
        response: wire.CreateGameAnswer,
        errors: ['GROUP_NOT_FOUND', 'GROUP_TOO_MANY_GAMES', 'VALIDATION_ERROR'],
      },
      async ({ caller, body: { display_name, developer_group_id, if_missing } }) => ({
        game_id: await games.create(caller, { display_name, developer_group_id, if_missing }),
      }),
    ),
    route(
      'POST',
      '/cloud/games/validate',
      {
        operation: 'validateGame',
        is_change: false,
        summary: 'Checks the name of a game without creating it.',
        allow: ['identity', 'cloud'],
        body: wire.GameNames,
        response: ValidationErrors,
      },
      async ({ body }) => ({ errors: games.validate(body) }),
    ),
    watched(
      '/cloud/games/:game_id',
      {
        operation: 'getGame',
        summary: 'Returns a game with its namespaces, versions and regions.',
        allow: ['identity', 'cloud'],
        access: 'read',
        response: wire.GameAnswer,
        errors: ['GAME_NOT_FOUND'],
      },
      ({ params }) => watchState(games.game, params.game_id, (game) => ({ game })),
    ),
    route(
      'POST',
      '/cloud/games/:game_id/tokens/cloud',
      {
        operation: 'createCloudToken',
        summary: 'Creates a token for tools that deploy the game.',
        allow: ['identity', 'cloud'],
        access: 'write',
        body: Empty,
        response: TokenAnswer,
        errors: ['GAME_NOT_FOUND'],
      },
      async (call) => {
        const { game_id } = call.params;
        const stamp = await games.authorizeTokenIssue(call.caller, game_id);
        call.recordDetails({ token_issued_ts: stamp.at.toISOString() });
        return { token: await games.createCloudToken(game_id, stamp) };
      },
    ),
    route(
      'POST',
      '/cloud/games/:game_id/tokens/revoke',
      {
        operation: 'revokeTokens',
        summary: 'Revokes all cloud and service tokens and share links of the game. For the owner of its group.',
        allow: ['identity'],
        access: 'write',
        body: Empty,
        response: Empty,
        errors: ['GAME_NOT_FOUND', 'GROUP_INSUFFICIENT_PERMISSIONS'],
      },
      async ({ caller, params }) => {
        await games.revokeTokens(caller, params.game_id);
        return {};
      },
    ),
    watched(
      '/portal/games/:game_name_id/profile',
      {
        operation: 'getGameProfile',
        summary: 'Returns a game as players see it, by its name id.',
        allow: ['identity', 'public'],
        free_params: ['game_name_id'],
        response: wire.GameProfileAnswer,
        errors: ['GAME_NOT_FOUND'],
      },
      async ({ params }) => {
        const { game_id, developer_group_id } = await games.getByNameId(params.game_name_id);
        return watchState(games.profile, { game_id, developer_group_id }, (game) => ({ game }));
      },
    ),
    route(
      'GET',
      '/cloud/auth/inspect',
      {
        operation: 'inspectToken',
        summary: "Describes the caller's token.",
        allow: ['identity', 'cloud'],
        response: wire.InspectAnswer,
      },
      async ({ caller }) => {
        if (caller.kind === 'cloud') return { agent: { game_cloud: { game_id: caller.game_id } } };
        return { agent: { identity: { identity_id: caller.identity_id } } };
      },
    ),
  ];
}
