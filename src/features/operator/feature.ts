import type { Feature } from '../../platform/feature.ts';
import { createOperator, type Operator, type OperatorDependencies } from './operator.ts';
import { operatorRoutes } from './routes.ts';

/** Opens what administrators see of the service. */
export function openOperator(dependencies: OperatorDependencies): Feature<Operator> {
  const operator = createOperator(dependencies);
  return { api: operator, routes: operatorRoutes(operator), startWork: (signal) => [operator.startWork(signal)] };
}
