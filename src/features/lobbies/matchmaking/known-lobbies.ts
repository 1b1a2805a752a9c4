import type { Database } from '../../../platform/database/database.ts';
import { ServiceError } from '../../../platform/errors.ts';
import { readCode } from '../../codes.ts';
import type { NamespaceRow } from '../../namespaces/namespaces.ts';
import type { Versions } from '../../versions/versions.ts';
import { lobbyStopped } from '../refusals.ts';
import * as store from '../store.ts';
import type { LobbyRow } from '../tables.ts';
import type { JoinBody } from '../wire.ts';
import type { Atlas } from './lobby-cache.ts';

interface KnownLobbiesDependencies {
  database: Database;
  atlas: Atlas;
  versions: Versions;
}

/** A lobby that somebody knows. */
type KnownLobby = Pick<LobbyRow, 'lobby_id' | 'version_id' | 'game_mode'> & {
  /** As it was when we last heard of it: it may have stopped since. */
  is_remembered: boolean;
};

export type KnownLobbies = ReturnType<typeof createKnownLobbies>;

/** The lobbies that joins name. One that we remember is not read: the round finds out whether it still takes anybody. */
export function createKnownLobbies({ database, atlas, versions }: KnownLobbiesDependencies) {
  return {
    /** Throws MATCHMAKER_LOBBY_NOT_FOUND and MATCHMAKER_LOBBY_STOPPED. */
    async lookUp(
      namespace: NamespaceRow,
      { lobby_id, code }: Pick<JoinBody, 'lobby_id' | 'code'>,
    ): Promise<KnownLobby> {
      const { namespace_id } = namespace;
      const remembered = code === undefined && lobby_id !== undefined && atlas.recall(namespace_id, lobby_id);
      // A captcha counts once, and not for a lobby that has stopped.
      if (remembered && !(await versions.captcha(namespace))) return { ...remembered, is_remembered: true };
      const lobby =
        lobby_id === undefined
          ? await store.selectLobbyByCode(database.queries, namespace_id, readCode(code ?? ''))
          : await store.selectLobby(database.queries, lobby_id);
      const is_known = lobby?.namespace_id === namespace_id && (code === undefined || lobby.code === readCode(code));
      if (!is_known) throw new ServiceError('MATCHMAKER_LOBBY_NOT_FOUND', {});
      if (lobby.stop_ts) throw lobbyStopped();
      return { ...lobby, is_remembered: false };
    },
    /** Why somebody may not join a lobby that was remembered: that it has stopped comes before all else. */
    async findRefusal(lobby_id: string, refusal: unknown): Promise<unknown> {
      const lobby = await store.selectLobby(database.queries, lobby_id);
      return lobby?.stop_ts ? lobbyStopped() : refusal;
    },
  };
}
