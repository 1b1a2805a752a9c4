import type { Static } from '@sinclair/typebox';
import { ServiceError } from '../../../../platform/errors.ts';
import type { NamespaceScope, Namespaces } from '../../../namespaces/namespaces.ts';
import { type Versions, verificationOf } from '../../../versions/versions.ts';
import { lobbyStopped } from '../../refusals.ts';
import * as store from '../../store.ts';
import type { LobbyRow } from '../../tables.ts';
import type { RequestContext } from '../request-context.ts';
import { createVerificationIds, requestVerdict, toVerifiedIds, type VerifyDependencies } from '../verify.ts';
import type { VerificationTrial, VerificationTrialAnswer } from './trials-wire.ts';

export interface TryVerificationDependencies extends Omit<VerifyDependencies, 'cache'> {
  namespaces: Pick<Namespaces, 'get'>;
  versions: Pick<Versions, 'gameModes'>;
}

/**
 * Asks the game's own verification server, as for a player's request with the address and User-Agent of the caller, and
 * returns its verdict. No seat is taken. Throws MATCHMAKER_GAME_MODE_NOT_FOUND, MATCHMAKER_VERIFICATION_NOT_USED,
 * MATCHMAKER_LOBBY_NOT_FOUND and MATCHMAKER_LOBBY_STOPPED.
 */
export async function tryVerification(
  dependencies: TryVerificationDependencies,
  scope: NamespaceScope,
  trial: VerificationTrial,
  context: Omit<RequestContext, 'readOrigin'>,
): Promise<Static<typeof VerificationTrialAnswer>> {
  const { game_id, namespace_id, version_id } = await dependencies.namespaces.get(scope);
  const { kind, game_mode, tags = {}, lobby_config } = trial;
  const mode = (await dependencies.versions.gameModes({ game_id, version_id })).get(game_mode);
  if (!mode) throw new ServiceError('MATCHMAKER_GAME_MODE_NOT_FOUND', { game_mode });
  const config = verificationOf(mode[kind]);
  if (!config) throw new ServiceError('MATCHMAKER_VERIFICATION_NOT_USED', { kind, game_mode });
  const content = {
    kind,
    game_mode,
    tags,
    body: trial,
    lobby: await lookUpTrialLobby(dependencies, namespace_id, trial.lobby_id),
    lobby_config: lobby_config === undefined ? undefined : JSON.stringify(lobby_config),
  };
  const nextVerificationId = createVerificationIds(context);
  const subject = { game_id, namespace_id, version_id, context, nextVerificationId };
  const verdict = await requestVerdict(dependencies, subject, config, content);
  return { verification: { ...toVerifiedIds(content), ...verdict } };
}

async function lookUpTrialLobby(
  { database }: Pick<TryVerificationDependencies, 'database'>,
  namespace_id: string,
  lobby_id: string | undefined,
): Promise<LobbyRow | undefined> {
  if (lobby_id === undefined) return undefined;
  const lobby = await store.selectLobby(database.queries, lobby_id);
  if (lobby?.namespace_id !== namespace_id) throw new ServiceError('MATCHMAKER_LOBBY_NOT_FOUND', {});
  if (lobby.stop_ts) throw lobbyStopped();
  return lobby;
}
