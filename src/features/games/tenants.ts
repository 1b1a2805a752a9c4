import type { Database } from '../../platform/database/database.ts';
import { ServiceError } from '../../platform/errors.ts';
import type { Scope, Tenants } from '../../platform/http/authorization.ts';
import type { Caller } from '../../platform/tokens/caller.ts';
import type { Groups } from '../groups/groups.ts';
import { createRevocations, type RevocationsDependencies } from './revocations.ts';
import * as store from './store.ts';

interface TenantsDependencies extends RevocationsDependencies {
  database: Database;
  groups: Groups;
}

/** Creates the authorization of callers: whether a token may act for a game, an environment or a lobby. */
export function createTenants(dependencies: TenantsDependencies): Tenants {
  const { database, groups, namespaces } = dependencies;
  const revocations = createRevocations(dependencies);

  async function isOfMember({ game_id, identity_id }: { game_id: string; identity_id: string }): Promise<boolean> {
    const game = await store.selectGame(database.queries, game_id);
    return game !== undefined && (await groups.mayActAsMember({ group_id: game.developer_group_id, identity_id }));
  }

  /** Returns whether a caller has access to what a scope names. */
  async function hasAccess(caller: Caller, scope: Scope, access: 'read' | 'write'): Promise<boolean> {
    const { game_id, namespace_id, lobby_id } = scope;
    switch (caller.kind) {
      case 'identity':
        return await isOfMember({ game_id, identity_id: caller.identity_id });
      case 'cloud':
        return caller.game_id === game_id;
      case 'service':
        return caller.namespace_id === namespace_id;
      case 'share': {
        const share = await revocations.findShare(caller.share_id);
        const is_within = share?.game_id === game_id && share.namespace_id === namespace_id;
        return access === 'read' && is_within && (share.lobby_id === null || share.lobby_id === lobby_id);
      }
      default:
        return false;
    }
  }

  return {
    /**
     * Hides which games exist: throws GAME_NOT_FOUND for foreign and missing ones alike, and GAME_ENVIRONMENT_NOT_FOUND
     * for a namespace of another game.
     */
    async authorize(caller, scope, access) {
      const { game_id, namespace_id } = scope;
      if (!(await hasAccess(caller, scope, access))) throw new ServiceError('GAME_NOT_FOUND', {});
      if (namespace_id === undefined) return;
      const namespace = await namespaces.find(namespace_id);
      if (namespace?.game_id !== game_id) throw new ServiceError('GAME_ENVIRONMENT_NOT_FOUND', {});
    },
    requireNotRevoked: revocations.requireNotRevoked,
    topicsOf: revocations.topicsOf,
  };
}
