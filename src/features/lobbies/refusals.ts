import { ServiceError } from '../../platform/errors.ts';
import type { Client } from './matchmaking/clients.ts';
import type { Refusal } from './matchmaking/planner.ts';

export function lobbyStopped(): ServiceError {
  return new ServiceError('MATCHMAKER_LOBBY_STOPPED', { reason: 'find another one' });
}

export function overLimit({ client }: { client: Client }): ServiceError {
  return new ServiceError('MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE', { max: client.players_max });
}

export function toRefusal(code: Refusal): ServiceError {
  return code === 'MATCHMAKER_LOBBY_STOPPED' ? lobbyStopped() : new ServiceError(code, {});
}
