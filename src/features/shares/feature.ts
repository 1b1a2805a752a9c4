import type { Feature } from '../../platform/feature.ts';
import { shareRoutes } from './routes.ts';
import { createShares, type Shares, type SharesDependencies } from './shares.ts';

/** Opens share links. */
export function openShares(dependencies: SharesDependencies): Feature<Shares> {
  const shares = createShares(dependencies);
  return { api: shares, routes: shareRoutes(shares), startWork: (signal) => [shares.startDeletingOld(signal)] };
}
