import type { Feature } from '../../platform/feature.ts';
import { type Billing, type BillingDependencies, createBilling } from './billing.ts';
import { billingRoutes } from './routes.ts';

/** Opens billing: the processor time that the games of a group used. */
export function openBilling(dependencies: BillingDependencies): Feature<Billing> {
  const billing = createBilling(dependencies);
  return { api: billing, routes: billingRoutes(billing) };
}
