import { ServiceError } from '../../platform/errors.ts';
import { createDeveloperApi, type DeveloperApiDependencies } from './developer-api.ts';
import { createEnding, type EndingDependencies } from './ending.ts';
import { createGameServerApi, type GameServerApiDependencies } from './game-server-api.ts';
import { createListing, type ListingDependencies } from './listing.ts';
import { createDevelopmentAnswers } from './matchmaking/development-answers.ts';
import { createMatchmaker, type MatchmakerDependencies } from './matchmaking/matchmaker.ts';
import { removeEnded } from './retention.ts';
import { isLobbyOn } from './retention-store.ts';
import { createLobbyRows } from './rows.ts';
import { countByMachine, countByNamespace, selectLobby, selectPlayersByGame } from './store.ts';

export type { ExportedLobby } from './developer-api.ts';

export type LobbiesDependencies = MatchmakerDependencies &
  GameServerApiDependencies &
  ListingDependencies &
  DeveloperApiDependencies &
  EndingDependencies;

export type Lobbies = ReturnType<typeof createLobbies>;

/** Creates the use cases of lobbies: players get seats, game servers report, developers read lists and history. */
export function createLobbies(dependencies: LobbiesDependencies) {
  const listing = createListing(dependencies);
  return {
    ...createMatchmaker(dependencies),
    ...createGameServerApi(dependencies),
    listing,
    /** The running lobbies of a namespace, of which watchers see windows. Watchable. */
    rows: createLobbyRows(dependencies),
    developerApi: createDeveloperApi(dependencies, createEnding(dependencies)),
    /** The answers to development tokens. */
    development: createDevelopmentAnswers(dependencies.tokens, listing),
    /** Returns how many players have a seat, by game; games without any are missing. */
    countPlayers: () => selectPlayersByGame(dependencies.database.queries),
    /** Returns how many lobbies run in namespaces that have any, and their players. */
    countByNamespace: () => countByNamespace(dependencies.database.queries),
    /** Returns how many lobbies run on machines, and their players, by machine. */
    countByMachine: () => countByMachine(dependencies.database.queries),
    /** Removes players who got seats, and lobbies that stopped, before a given time, in small steps. */
    removeEnded: (before: Date) => removeEnded(dependencies.database, before),
    /** Returns the condition that the server whose id is in the column has a lobby, running or ended. */
    isOn: isLobbyOn,
    /** Returns the namespace of a lobby of a game, running or ended. */
    async namespaceOf({ game_id, lobby_id }: { game_id: string; lobby_id: string }): Promise<string | undefined> {
      const lobby = await selectLobby(dependencies.database.queries, lobby_id);
      return lobby?.game_id === game_id ? lobby.namespace_id : undefined;
    },
    /** Returns the server that a lobby of a game runs, or ran, on. Throws MATCHMAKER_LOBBY_NOT_FOUND. */
    async serverOf({ game_id, lobby_id }: { game_id: string; lobby_id: string }): Promise<string> {
      const lobby = await selectLobby(dependencies.database.queries, lobby_id);
      if (lobby?.game_id !== game_id) throw new ServiceError('MATCHMAKER_LOBBY_NOT_FOUND', {});
      return lobby.server_id;
    },
  };
}
