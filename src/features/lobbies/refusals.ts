import { ServiceError } from '../../platform/errors.ts';
import type { Refusal } from './matchmaking/planner.ts';

export function lobbyStopped(): ServiceError {
  return new ServiceError('MATCHMAKER_LOBBY_STOPPED', { reason: 'find another one' });
}

export function refusalOf(code: Refusal): ServiceError {
  return code === 'MATCHMAKER_LOBBY_STOPPED' ? lobbyStopped() : new ServiceError(code, {});
}
