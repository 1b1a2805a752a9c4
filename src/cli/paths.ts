import type { Scope } from './session.ts';

const ofNamespace = ({ game, namespace }: Scope) => `/cloud/games/${game.game_id}/namespaces/${namespace.namespace_id}`;

/** The paths of the API for a namespace. */
export const paths = {
  namespace: ofNamespace,
  runningLobbies: (scope: Scope) => `${ofNamespace(scope)}/analytics/matchmaker/live`,
  lobbyRows: (scope: Scope) => `${ofNamespace(scope)}/matchmaker/lobbies`,
  lobby: ({ game }: Scope, lobby_id: string) => `/cloud/games/${game.game_id}/matchmaker/lobbies/${lobby_id}`,
  lobbyDetails: (scope: Scope, lobby_id: string) => `${ofNamespace(scope)}/matchmaker/lobbies/${lobby_id}`,
  receipts: (scope: Scope) => `${ofNamespace(scope)}/matchmaker/receipts`,
  serverRows: (scope: Scope) => `${ofNamespace(scope)}/servers`,
  servers: ({ game, namespace }: Scope) => `/games/${game.game_id}/environments/${namespace.namespace_id}/servers`,
};
