import { ServiceError } from '../../platform/errors.ts';
import type { LimitedClient } from './matchmaking/client-limits.ts';
import type { Refusal } from './matchmaking/rounds/planner.ts';

/** Returns the error of a player's request whose lobby has stopped. */
export function lobbyStopped(): ServiceError {
  return new ServiceError('MATCHMAKER_LOBBY_STOPPED', { reason: 'find another one' });
}

/** Returns the error of a call about a lobby that has stopped, as a developer or game server reads it. */
export function lobbyOfServerStopped(): ServiceError {
  return new ServiceError('MATCHMAKER_LOBBY_STOPPED', {
    reason: 'calls about it have no effect, so its server should exit',
  });
}

/** Returns the error of a request whose client would be over its limit. */
export function overLimit({ client }: { client: LimitedClient }): ServiceError {
  return new ServiceError('MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE', { max: client.players_max });
}

export function errorOfRefusal(refusal: Refusal): ServiceError {
  return refusal === 'MATCHMAKER_LOBBY_STOPPED' ? lobbyStopped() : new ServiceError(refusal, {});
}
