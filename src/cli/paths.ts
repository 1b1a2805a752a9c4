import type { Scope } from './session.ts';

/** The paths of the API for a namespace. */
export const paths = {
  runningLobbies: ({ game, namespace }: Scope) =>
    `/cloud/games/${game.game_id}/namespaces/${namespace.namespace_id}/analytics/matchmaker/live`,
  lobbyRows: ({ game, namespace }: Scope) =>
    `/cloud/games/${game.game_id}/namespaces/${namespace.namespace_id}/matchmaker/lobbies`,
  lobby: ({ game }: Scope, lobby_id: string) => `/cloud/games/${game.game_id}/matchmaker/lobbies/${lobby_id}`,
  lobbyDetails: ({ game, namespace }: Scope, lobby_id: string) =>
    `/cloud/games/${game.game_id}/namespaces/${namespace.namespace_id}/matchmaker/lobbies/${lobby_id}`,
  receipts: ({ game, namespace }: Scope) =>
    `/cloud/games/${game.game_id}/namespaces/${namespace.namespace_id}/matchmaker/receipts`,
  serverRows: ({ game, namespace }: Scope) =>
    `/cloud/games/${game.game_id}/namespaces/${namespace.namespace_id}/servers`,
  servers: ({ game, namespace }: Scope) => `/games/${game.game_id}/environments/${namespace.namespace_id}/servers`,
};
