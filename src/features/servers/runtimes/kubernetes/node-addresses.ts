import { LRUCache } from 'lru-cache';
import { type ClusterClient, ClusterRefusal } from './cluster-client.ts';
import { Node } from './pod-shapes.ts';

const NODES_MAX = 10_000;
const READ_AGAIN_AFTER_MS = 60_000;

/** Returns the public address of a node; undefined if it has none, or if Muster may not read nodes. */
export type ReadNodeAddress = (node: string) => Promise<string | undefined>;

/** Creates the lookup of the addresses at which players reach nodes. */
export function createNodeAddresses(client: ClusterClient): ReadNodeAddress {
  const known = new LRUCache<string, { address: string | undefined; read_at: number }>({ max: NODES_MAX });

  async function read(node: string): Promise<string | undefined> {
    try {
      const request = { method: 'GET', path: `/api/v1/nodes/${encodeURIComponent(node)}` } as const;
      const { status } = await client.read(Node, request);
      return status?.addresses?.find(({ type }) => type === 'ExternalIP')?.address;
    } catch (cause) {
      if (cause instanceof ClusterRefusal) return undefined;
      throw cause;
    }
  }

  return async (node) => {
    const before = known.get(node);
    const now = performance.now();
    if (before && now - before.read_at < READ_AGAIN_AFTER_MS) return before.address;
    try {
      const address = await read(node);
      known.set(node, { address, read_at: now });
      return address;
    } catch (cause) {
      if (!before) throw cause;
      // Keeps the last address until the API server answers again.
      known.set(node, { ...before, read_at: now });
      return before.address;
    }
  };
}
