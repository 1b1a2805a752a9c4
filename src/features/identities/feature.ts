import type { Feature } from '../../platform/feature.ts';
import { startDeletingOld } from '../../platform/loop.ts';
import { loadKey } from '../../platform/tokens/keys.ts';
import { createIdentities, type Identities, type IdentitiesDependencies } from './identities.ts';
import { type IdentityRoutesDependencies, identityRoutes } from './routes.ts';
import { sessionRoutes } from './session-routes.ts';

type Dependencies = Omit<IdentitiesDependencies, 'refresh_key'> & Omit<IdentityRoutesDependencies, 'identities'>;

/** Opens identities: people and guests of games, with their profiles and sessions. */
export async function openIdentities(dependencies: Dependencies): Promise<Feature<Identities>> {
  const { database, clock, events } = dependencies;
  const refresh_key = await loadKey(database.queries, clock, 'refresh');
  const identities = createIdentities({ ...dependencies, refresh_key });
  return {
    api: identities,
    routes: [...sessionRoutes(identities, dependencies), ...identityRoutes({ ...dependencies, identities })],
    startWork: (signal) => [
      identities.startForgetting(signal),
      startDeletingOld({ name: 'old-refresh-tokens', deleteOld: identities.deleteOldRefreshTokens, signal, events }),
      startDeletingOld({ name: 'old-guests', deleteOld: identities.deleteOldGuests, signal, events }),
    ],
  };
}
