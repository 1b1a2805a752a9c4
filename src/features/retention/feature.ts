import type { Feature } from '../../platform/feature.ts';
import { type RetentionDependencies, startRetention } from './retention.ts';

/** Opens retention: the work that removes old history. */
export function openRetention(dependencies: RetentionDependencies): Feature<undefined> {
  return { api: undefined, startWork: (signal) => [startRetention(dependencies, signal)] };
}
