import { ServiceError } from '../../platform/errors.ts';
import { route } from '../../platform/http/route.ts';
import { Empty, ValidationErrors, WatchQuery } from '../../platform/http/shapes.ts';
import { nameCaller } from '../../platform/tokens/caller.ts';
import type { Watch } from '../../platform/watch/watch.ts';
import type { Games } from './games.ts';
import * as wire from './wire.ts';

export function gameRoutes(games: Games, watch: Watch) {
  return [
    route(
      'GET',
      '/cloud/games',
      {
        summary: "Lists the games of the caller's groups, and these groups.",
        allow: ['identity', 'cloud'],
        query: WatchQuery,
        response: wire.GamesAnswer,
        errors: ['API_FORBIDDEN', 'TOO_MANY_WATCHERS'],
      },
      async ({ caller, query, signal }) => {
        if (caller.kind === 'cloud') {
          if (query.watch_index !== undefined) {
            throw new ServiceError('API_FORBIDDEN', { reason: 'the list of games is watched with an identity token' });
          }
          return { ...(await games.listForCloud(caller.game_id)), watch: { index: '' } };
        }
        const waiting = { ...query, watch_index: query.watch_index, signal, waiter: nameCaller(caller) };
        const { view, watch: seen } = await watch.answer(games.gamesOf, caller.identity_id, waiting);
        return { ...view, watch: seen };
      },
    ),
    route(
      'POST',
      '/cloud/games',
      {
        summary: 'Creates a game of a group, with a first version and the namespaces prod and staging.',
        allow: ['identity'],
        body: wire.CreateGameBody,
        response: wire.CreateGameAnswer,
        errors: ['GROUP_NOT_FOUND', 'VALIDATION_ERROR'],
      },
      async ({ caller, body: { display_name, developer_group_id } }) => ({
        game_id: await games.create(caller, { display_name, developer_group_id }),
      }),
    ),
    route(
      'POST',
      '/cloud/games/validate',
      {
        summary: 'Says what is wrong with the names of a game, without creating it.',
        allow: ['identity', 'cloud'],
        body: wire.GameNames,
        response: ValidationErrors,
      },
      async ({ body }) => ({ errors: await games.validate(body) }),
    ),
    route(
      'GET',
      '/cloud/games/:game_id',
      {
        summary: 'A game with its namespaces, versions and regions.',
        allow: ['identity', 'cloud'],
        access: 'read',
        query: WatchQuery,
        response: wire.GameAnswer,
        errors: ['GAME_NOT_FOUND', 'TOO_MANY_WATCHERS'],
      },
      async ({ caller, params, query, signal }) => {
        const waiting = { watch_index: query.watch_index, signal, waiter: nameCaller(caller) };
        const { view, watch: seen } = await watch.answer(games.game, params.game_id, waiting);
        return { game: view, watch: seen };
      },
    ),
    route(
      'POST',
      '/cloud/games/:game_id/tokens/cloud',
      {
        summary: 'Makes a token for tools that deploy the game.',
        allow: ['identity', 'cloud'],
        access: 'write',
        body: Empty,
        response: wire.TokenAnswer,
        errors: ['GAME_NOT_FOUND'],
      },
      async ({ params }) => ({ token: await games.createCloudToken(params.game_id) }),
    ),
    route(
      'GET',
      '/portal/games/:game_name_id/profile',
      {
        summary: 'A game as players see it, by its name id.',
        allow: ['identity', 'public'],
        free_params: ['game_name_id'],
        query: WatchQuery,
        response: wire.GameProfileAnswer,
        errors: ['GAME_NOT_FOUND'],
      },
      // It seldom changes; its index is never waited for.
      async ({ params }) => ({ game: await games.profile(params.game_name_id), watch: { index: '' } }),
    ),
    route(
      'GET',
      '/cloud/auth/inspect',
      {
        summary: 'Says whose token this is.',
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
