import { createHmac } from 'node:crypto';

const ID_BYTES = 16;

interface ClusterPlace {
  /** The id of the Kubernetes namespace of its pods. */
  pods_namespace_id: string;
  datacenter_id: string;
}

/**
 * Returns the id of a cluster's machine. Services with other databases, which have other keys, have another machine in the
 * same Kubernetes namespace.
 */
export function machineIdOf({ pods_namespace_id, datacenter_id }: ClusterPlace, key: string): string {
  const hmac = createHmac('sha256', key).update(`machine of ${pods_namespace_id} in ${datacenter_id}`);
  const bytes = hmac.digest().subarray(0, ID_BYTES);
  // Version 8 and the variant of RFC 9562: an id that Muster computes.
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x80;
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
  const hex = bytes.toString('hex');
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
}
