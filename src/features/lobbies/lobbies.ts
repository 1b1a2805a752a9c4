import { ServiceError } from '../../platform/errors.ts';
import { createDeveloperApi, type DeveloperApiDependencies } from './developers/developer-api.ts';
import { createRunningRows } from './developers/running-rows.ts';
import { createGameServerApi, type GameServerApiDependencies } from './game-server-api.ts';
import { createListing, type ListingDependencies } from './listing.ts';
import { createDevelopmentAnswers } from './matchmaking/development-answers.ts';
import { createMatchmaker, type MatchmakerDependencies } from './matchmaking/matchmaker.ts';
import { createStopping, type StoppingDependencies } from './stopping.ts';
import { countByMachine, countByNamespace, selectLobby, selectPlayersByGame } from './store.ts';
import type { LobbyRow } from './tables.ts';
import { deleteEnded } from './upkeep/retention.ts';
import { hasLobbyOn } from './upkeep/retention-store.ts';

export type { ExportedLobby } from './developers/developer-api.ts';

export type LobbiesDependencies = MatchmakerDependencies &
  GameServerApiDependencies &
  ListingDependencies &
  DeveloperApiDependencies &
  StoppingDependencies;

/** A lobby, running or stopped, and the game that it is one of. */
type LobbyOfGame = Pick<LobbyRow, 'game_id' | 'lobby_id'>;

export type Lobbies = ReturnType<typeof createLobbiesApi>;

/** Creates the use cases of lobbies: players get seats, game servers report, developers read lists and history. */
export function createLobbiesApi(dependencies: LobbiesDependencies) {
  const listing = createListing(dependencies);

  async function getLobbyOf({ game_id, lobby_id }: LobbyOfGame): Promise<LobbyRow> {
    const lobby = await selectLobby(dependencies.database.queries, lobby_id);
    if (lobby?.game_id !== game_id) throw new ServiceError('MATCHMAKER_LOBBY_NOT_FOUND', {});
    return lobby;
  }

  return {
    ...createMatchmaker(dependencies),
    ...createGameServerApi(dependencies),
    listing,
    /** The running lobbies of a namespace, of which watchers see windows. Watchable. */
    rows: createRunningRows(dependencies),
    developerApi: createDeveloperApi(dependencies, createStopping(dependencies)),
    /** The answers to development tokens. */
    development: createDevelopmentAnswers(dependencies.tokens, listing),
    /** Returns how many players have a seat, by game; games without any are missing. */
    countPlayers: () => selectPlayersByGame(dependencies.database.queries),
    /** Returns how many lobbies run in namespaces that have any, and their players. */
    countByNamespace: () => countByNamespace(dependencies.database.queries),
    /** Returns how many lobbies run, and their players, by machine. Lobbies whose server has no machine yet have the key ''. */
    countByMachine: () => countByMachine(dependencies.database.queries),
    /**
     * Deletes the rows of players who got their seats, and of lobbies that stopped, before a given time, in small
     * steps. Keeps players who still have a seat.
     */
    deleteEnded: (before: Date) => deleteEnded(dependencies.database, before),
    /** Returns an SQL condition: the server with the id in this column is that of a lobby, running or stopped. */
    hasLobbyOn,
    /** Returns the namespace of a lobby of a game, running or stopped. */
    async namespaceOf({ game_id, lobby_id }: LobbyOfGame): Promise<string | undefined> {
      const lobby = await selectLobby(dependencies.database.queries, lobby_id);
      return lobby?.game_id === game_id ? lobby.namespace_id : undefined;
    },
    /** Throws MATCHMAKER_LOBBY_NOT_FOUND unless the lobby is one of the game's. */
    async requireLobbyOf(lobby: LobbyOfGame): Promise<void> {
      await getLobbyOf(lobby);
    },
    /** Returns the server that a lobby of a game runs, or ran, on. Throws MATCHMAKER_LOBBY_NOT_FOUND. */
    serverOf: async (lobby: LobbyOfGame): Promise<string> => (await getLobbyOf(lobby)).server_id,
  };
}
