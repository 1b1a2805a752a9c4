import type { Feature } from '../../platform/feature.ts';
import { startForgetting } from '../../platform/loop.ts';
import { createIdentities, type Identities, type IdentitiesDependencies } from './identities.ts';
import { type IdentityRoutesDependencies, identityRoutes } from './routes.ts';
import { sessionRoutes } from './session-routes.ts';

type Dependencies = IdentitiesDependencies & Omit<IdentityRoutesDependencies, 'identities'>;

/** Opens identities: people and guests of games, with their profiles and sessions. */
export function openIdentities(dependencies: Dependencies): Feature<Identities> {
  const { events } = dependencies;
  const identities = createIdentities(dependencies);
  return {
    api: identities,
    routes: [...sessionRoutes(identities, dependencies), ...identityRoutes({ ...dependencies, identities })],
    startWork: (signal) => [
      identities.startForgetting(signal),
      startForgetting({ name: 'old-refresh-tokens', forget: identities.forgetRefreshTokens, signal, events }),
      startForgetting({ name: 'old-guests', forget: identities.forgetGuests, signal, events }),
    ],
  };
}
