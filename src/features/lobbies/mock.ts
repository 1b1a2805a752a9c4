import { ServiceError } from '../../platform/errors.ts';
import type { CallerOf } from '../../platform/tokens/caller.ts';
import type { Tokens } from '../../platform/tokens/tokens.ts';
import { type JoinAnswer, toDevelopmentPorts, toJoinAnswer } from './wire.ts';

/** The sign by which a developer sees that he talks to his own machine. */
const NO_LOBBY = '00000000-0000-0000-0000-000000000000';
const REGION = { region_id: 'dev-lcl', display_name: 'Local' };

/**
 * What the matchmaker answers to development tokens (field-behaviour 1.8): as if a lobby ran at the host name and ports
 * that the token lists. It touches nothing.
 */
export function createMock(tokens: Tokens) {
  return {
    async join({ namespace_id, hostname, ports }: CallerOf<'development'>): Promise<JoinAnswer> {
      const player = { kind: 'development_player', namespace_id, player_id: Bun.randomUUIDv7() } as const;
      const player_token = await tokens.issue(player);
      return toJoinAnswer({ lobby_id: NO_LOBBY, region: REGION }, toDevelopmentPorts(hostname, ports), player_token);
    },
    /** A server under development tells of a player, whose token must be from a mock answer of the same namespace. */
    async checkPlayer({ namespace_id }: CallerOf<'development'>, player_token: string): Promise<void> {
      const player = await tokens.verifyKind(player_token, ['development_player']);
      if (player.namespace_id !== namespace_id) {
        throw new ServiceError('TOKEN_ERROR', { reason: 'it belongs to another namespace' });
      }
    },
  };
}
