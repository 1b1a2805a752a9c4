import { ServiceError } from '../../platform/errors.ts';
import type { Feed } from '../../platform/watch/feed.ts';
import type { Verification } from '../verification/verification.ts';
import { createEnding, type EndingDependencies } from './ending.ts';
import { createHosting, type HostingDependencies } from './game-server-api.ts';
import { createHistory, type HistoryDependencies } from './history.ts';
import { createListing, type ListingDependencies } from './listing.ts';
import { createFounding } from './matchmaking/create-lobbies.ts';
import { createMock } from './matchmaking/development-answers.ts';
import { createKnownLobbies } from './matchmaking/known-lobbies.ts';
import { createAtlas } from './matchmaking/lobby-cache.ts';
import { createQueue, type QueueDependencies } from './matchmaking/queue.ts';
import { createReceipts, type ReceiptsDependencies } from './matchmaking/receipts.ts';
import { createRounds } from './matchmaking/rounds.ts';
import { createSeating, type SeatingDependencies } from './matchmaking/seating.ts';
import { createVerifying } from './matchmaking/verify.ts';
import { selectLobby, selectPlayersOf } from './store.ts';

export type { ExportedLobby } from './history.ts';

export type LobbiesDependencies = Omit<
  SeatingDependencies,
  'known' | 'rounds' | 'queue' | 'founding' | 'receipts' | 'verifying'
> &
  HostingDependencies &
  ListingDependencies &
  HistoryDependencies &
  EndingDependencies &
  ReceiptsDependencies &
  QueueDependencies & { feed: Feed; verification: Verification };

export type Lobbies = ReturnType<typeof createLobbies>;

/** The matchmaker: players find and join lobbies; lobbies tell of themselves and of their players. */
export function createLobbies(dependencies: LobbiesDependencies) {
  const atlas = createAtlas(dependencies);
  const known = createKnownLobbies({ ...dependencies, atlas });
  const founding = createFounding(dependencies);
  const listing = createListing(dependencies);
  const receipts = createReceipts(dependencies);
  const rounds = createRounds({ ...dependencies, atlas, founding });
  const verifying = createVerifying({ ...dependencies, atlas });
  const queue = createQueue({ ...dependencies, rounds });
  return {
    ...createSeating({ ...dependencies, known, rounds, queue, founding, receipts, verifying }),
    ...createHosting(dependencies),
    listing,
    receipts,
    queue,
    history: createHistory(dependencies, createEnding(dependencies)),
    /** The answers for development tokens. */
    mock: createMock(dependencies.tokens, listing),
    /** How many players of games have a seat, by game; games without any may be missing. */
    countPlayers: (game_ids: string[]) => selectPlayersOf(dependencies.database.queries, game_ids),
    /** The server that a lobby of a game runs, or ran, on. Throws MATCHMAKER_LOBBY_NOT_FOUND. */
    async serverOf({ game_id, lobby_id }: { game_id: string; lobby_id: string }): Promise<string> {
      const lobby = await selectLobby(dependencies.database.queries, lobby_id);
      if (lobby?.game_id !== game_id) throw new ServiceError('MATCHMAKER_LOBBY_NOT_FOUND', {});
      return lobby.server_id;
    },
  };
}
