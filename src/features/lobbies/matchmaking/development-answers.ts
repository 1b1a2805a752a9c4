import { ServiceError } from '../../../platform/errors.ts';
import type { CallerOf } from '../../../platform/tokens/caller.ts';
import type { Tokens } from '../../../platform/tokens/tokens.ts';
import type { Watchable } from '../../../platform/watch/views.ts';
import { topics } from '../../topics.ts';
import type { GameModeSettings } from '../../versions/versions.ts';
import type { createListing } from '../listing.ts';
import { type Listing, type LobbyById, type Statistics, toRegion } from '../listing-wire.ts';
import { type JoinAnswer, toDevelopmentPorts, toJoinAnswer } from '../wire.ts';
import { type QueuePosition, toQueuePosition } from './queue/queue-wire.ts';

/** The id of the lobby in all answers. It shows developers that the answer is a mock. */
const NO_LOBBY = '00000000-0000-0000-0000-000000000000';
const REGION = { region_id: 'dev-lcl', display_name: 'Local' };
const LISTED_REGION = {
  ...toRegion({ slug: REGION.region_id, name: REGION.display_name, latitude: null, longitude: null }, undefined),
  provider_display_name: 'Development',
};

const STATE = { foo: 'bar' };

/**
 * Creates the matchmaker's answers to development tokens, as if a lobby ran at the host name and ports in the token. They
 * change nothing.
 */
export function createDevelopmentAnswers(tokens: Tokens, listing: Pick<ReturnType<typeof createListing>, 'modesOf'>) {
  /** A lobby of each game mode of the namespace's version. Watchable. */
  const list: Watchable<{ namespace_id: string; include_state: boolean }, Listing> = {
    topics: ({ namespace_id }) => [topics.namespace(namespace_id)],
    async read({ namespace_id, include_state }) {
      const modes = await listing.modesOf({ namespace_id });
      return {
        game_modes: modes.map(({ name }) => ({ game_mode_id: name })),
        regions: [LISTED_REGION],
        lobbies: modes.map((mode) => ({ ...toMockLobby(mode), ...(include_state ? { state: STATE } : {}) })),
      };
    },
  };

  /** The lobby of the first game mode, by its id of zeros. Watchable. */
  const lobby: Watchable<{ namespace_id: string; lobby_id: string }, LobbyById> = {
    topics: ({ namespace_id }) => [topics.namespace(namespace_id)],
    async read({ namespace_id, lobby_id }) {
      const [mode] = await listing.modesOf({ namespace_id });
      if (!mode || lobby_id !== NO_LOBBY) throw new ServiceError('MATCHMAKER_LOBBY_NOT_FOUND', {});
      return { ...toMockLobby(mode), state: STATE, is_closed: false, is_ready: true };
    },
  };

  /** Statistics without players. Watchable. */
  const statistics: Watchable<string, Statistics> = {
    topics: () => [],
    read: async () => ({ player_count: 0, game_modes: {} }),
  };

  /** The position of a find, which never waits. Watchable. */
  const queuePosition: Watchable<{ namespace_id: string; ticket: string }, QueuePosition> = {
    topics: () => [],
    read: async ({ ticket }) => toQueuePosition(ticket, undefined),
  };

  return {
    queuePosition,
    async join(
      { namespace_id, hostname, ports }: CallerOf<'development'>,
      { players = 1 }: { players?: number | undefined },
    ): Promise<JoinAnswer> {
      const issue = () =>
        tokens.issue({ kind: 'development_player', namespace_id, player_id: Bun.randomUUIDv7() } as const);
      const player_tokens = await Promise.all(Array.from({ length: players }, issue));
      return toJoinAnswer({ lobby_id: NO_LOBBY, region: REGION }, toDevelopmentPorts(hostname, ports), player_tokens);
    },
    list,
    lobby,
    statistics,
    regions: () => ({ regions: [LISTED_REGION] }),
    /**
     * Checks the token of a player that a server under development reports. It must be from a mock answer of its
     * namespace.
     */
    async checkPlayer({ namespace_id }: CallerOf<'development'>, player_token: string): Promise<void> {
      const player = await tokens.verifyKind(player_token, ['development_player']);
      if (player.namespace_id !== namespace_id) {
        throw new ServiceError('TOKEN_ERROR', { reason: 'it belongs to another namespace' });
      }
    },
  };
}

function toMockLobby({ name, max_players_normal, max_players_direct, max_players_party }: GameModeSettings) {
  return {
    region_id: REGION.region_id,
    game_mode_id: name,
    lobby_id: NO_LOBBY,
    max_players_normal,
    max_players_direct,
    max_players_party,
    total_player_count: 0,
  };
}
