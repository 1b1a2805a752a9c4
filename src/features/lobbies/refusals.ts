import { ServiceError } from '../../platform/errors.ts';
import type { Client } from './matchmaking/clients.ts';
import type { Refusal } from './matchmaking/planner.ts';

/** The lobby of a request has stopped. The text is for the player. */
export function lobbyStopped(): ServiceError {
  return new ServiceError('MATCHMAKER_LOBBY_STOPPED', { reason: 'find another one' });
}

/** The lobby of a game server has stopped. The text is for a developer. */
export function lobbyOfServerStopped(): ServiceError {
  return new ServiceError('MATCHMAKER_LOBBY_STOPPED', {
    reason: 'calls about it have no effect, so its server should exit',
  });
}

export function overLimit({ client }: { client: Client }): ServiceError {
  return new ServiceError('MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE', { max: client.players_max });
}

export function toRefusal(code: Refusal): ServiceError {
  return code === 'MATCHMAKER_LOBBY_STOPPED' ? lobbyStopped() : new ServiceError(code, {});
}
