import type { Events } from '../../platform/events.ts';
import type { Feature } from '../../platform/feature.ts';
import { type IpDatabase, NO_IP_DATABASE } from '../../platform/ip-database.ts';
import { createOutbound } from '../../platform/outbound/outbound.ts';
import { createVerification, type Verification, type VerificationDependencies } from './verification.ts';

interface Dependencies extends Omit<VerificationDependencies, 'outbound' | 'ip_database'> {
  events: Events;
  /** Undefined if none is configured. */
  ip_database: IpDatabase | undefined;
  /** Targets that the operator allows although they are not on the Internet. */
  outbound_allow: readonly string[];
}

/** Opens the client of games' own verification servers. */
export function openVerification(dependencies: Dependencies): Feature<Verification> {
  const { events, ip_database = NO_IP_DATABASE, outbound_allow } = dependencies;
  const outbound = createOutbound({
    allowed_private: outbound_allow,
    onBreak: (destination) => events.emit({ event: 'outbound_target_paused', ...destination }),
  });
  return { api: createVerification({ ...dependencies, ip_database, outbound }) };
}
