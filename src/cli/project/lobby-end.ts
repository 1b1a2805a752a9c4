import { Failure } from '../../terminal/failure.ts';
import { paths } from '../paths.ts';
import type { Scope, Session } from '../session.ts';

/** Errors of a request for a lobby that has ended. */
const HAS_ENDED = /^MATCHMAKER_LOBBY_(NOT_FOUND|STOPPED)$/;

/** Ends a lobby and its server. Does nothing if it has ended. */
export async function endLobby({ api }: Pick<Session, 'api'>, scope: Scope, lobby_id: string): Promise<void> {
  await unlessEnded(api.call('DELETE', paths.lobby(scope, lobby_id)));
}

/** Closes a lobby to finds. Does nothing if it has ended. */
export async function closeLobby({ api }: Pick<Session, 'api'>, scope: Scope, lobby_id: string): Promise<void> {
  await unlessEnded(api.call('PUT', `${paths.lobby(scope, lobby_id)}/closed`, { body: { is_closed: true } }));
}

async function unlessEnded(request: Promise<unknown>): Promise<void> {
  try {
    await request;
  } catch (error) {
    if (!(error instanceof Failure) || !HAS_ENDED.test(error.refusal?.code ?? '')) throw error;
  }
}
