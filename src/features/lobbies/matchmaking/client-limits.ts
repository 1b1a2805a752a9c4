import type { AddressClass, AddressClasses } from '../../../platform/address-classes.ts';
import { countingKeyOf } from '../../../platform/networks.ts';
import type { NamespaceRow } from '../../namespaces/namespaces.ts';

/**
 * A client with its limit. A client is an address, or its network with IPv6; its players are counted together, up to a
 * maximum in the namespace.
 */
export interface LimitedClient {
  name: string;
  players_max: number;
}

/** The limits of a namespace for its clients. */
export type ClientLimits = Pick<NamespaceRow, 'max_players_per_client' | `max_players_per_client_${AddressClass}`>;

/** Returns the client of an address, with its limit in a namespace. */
export function limitedClientOf(limits: ClientLimits, address: string, address_classes: AddressClasses): LimitedClient {
  return { name: countingKeyOf(address), players_max: playersMaxOf(limits, address_classes.classesOf(address)) };
}

/** Returns the lowest limit that applies to a client whose address has these classes. */
export function playersMaxOf(limits: ClientLimits, classes: AddressClass[]): number {
  const class_limits = classes.map((address_class) => limits[`max_players_per_client_${address_class}`]);
  return Math.min(limits.max_players_per_client, ...class_limits);
}
