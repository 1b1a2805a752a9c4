import type { Place } from './session.ts';

/** The paths of the API for a namespace. */
export const paths = {
  live: ({ game, namespace }: Place) =>
    `/cloud/games/${game.game_id}/namespaces/${namespace.namespace_id}/analytics/matchmaker/live`,
  lobbyRows: ({ game, namespace }: Place) =>
    `/cloud/games/${game.game_id}/namespaces/${namespace.namespace_id}/matchmaker/lobbies`,
  lobby: ({ game }: Place, lobby_id: string) => `/cloud/games/${game.game_id}/matchmaker/lobbies/${lobby_id}`,
  lobbyDetails: ({ game, namespace }: Place, lobby_id: string) =>
    `/cloud/games/${game.game_id}/namespaces/${namespace.namespace_id}/matchmaker/lobbies/${lobby_id}`,
  receipts: ({ game, namespace }: Place) =>
    `/cloud/games/${game.game_id}/namespaces/${namespace.namespace_id}/matchmaker/receipts`,
  serverRows: ({ game, namespace }: Place) =>
    `/cloud/games/${game.game_id}/namespaces/${namespace.namespace_id}/servers`,
  servers: ({ game, namespace }: Place) => `/games/${game.game_id}/environments/${namespace.namespace_id}/servers`,
};
