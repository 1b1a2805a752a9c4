import { LRUCache } from 'lru-cache';
import { type ApiClient, ApiUnreachable } from './api-client.ts';
import { ADDRESS_ANNOTATION, selectorOf } from './pod-manifest.ts';
import { PodList } from './pod-shapes.ts';

const ADDRESSES_MAX = 100;
const ADDRESS_MAX_AGE_MS = 60_000;
const UNKNOWN_MAX_AGE_MS = 5_000;
/** Anyone who reaches the registry may name a machine. */
const LOOKUPS_MAX = 4;
/** Time for another machine to answer. It may have to read the build first. */
const ANSWER_MAX_MS = 120_000;
const FORWARDED = 'muster-forwarded';
const HEADERS = ['content-type', 'content-length', 'content-range', 'docker-content-digest'];

interface OtherRegistriesOptions {
  client: Pick<ApiClient, 'read'>;
  namespace: string;
}

/** The registries of other machines whose servers run in the same cluster. Nodes may reach any machine by one name. */
export class OtherRegistries {
  /** Empty for a machine without pods. */
  readonly #addresses = new LRUCache<string, string>({ max: ADDRESSES_MAX });
  #lookups = 0;

  constructor(private readonly options: OtherRegistriesOptions) {}

  /** Asks the registry of a machine. Returns undefined if it has none, or does not answer. */
  async ask(machine_id: string, request: Request): Promise<Response | undefined> {
    if (request.headers.has(FORWARDED)) return undefined;
    const address = await this.#find(machine_id);
    if (address === '') return undefined;
    const range = request.headers.get('range');
    const deadline = new AbortController();
    const timer = setTimeout(() => deadline.abort(), ANSWER_MAX_MS);
    try {
      const answer = await fetch(address + new URL(request.url).pathname, {
        method: request.method,
        headers: { [FORWARDED]: '1', ...(range !== null && { range }) },
        signal: AbortSignal.any([request.signal, deadline.signal]),
        redirect: 'error',
        timeout: false,
      });
      const headers = HEADERS.flatMap((name) => {
        const value = answer.headers.get(name);
        return value === null ? [] : [[name, value] as [string, string]];
      });
      return new Response(request.method === 'HEAD' ? null : answer.body, { status: answer.status, headers });
    } catch {
      this.#addresses.delete(machine_id);
      return undefined;
    } finally {
      clearTimeout(timer);
    }
  }

  /** Returns the address at which pods reach a machine; empty if it has no pods in the cluster. */
  async #find(machine_id: string): Promise<string> {
    const known = this.#addresses.get(machine_id);
    if (known !== undefined) return known;
    if (this.#lookups >= LOOKUPS_MAX) return '';
    this.#lookups += 1;
    try {
      const { client, namespace } = this.options;
      const query = { labelSelector: selectorOf(machine_id), limit: '1' };
      const { items } = await client.read(PodList, {
        method: 'GET',
        path: `/api/v1/namespaces/${namespace}/pods`,
        query,
      });
      const address = items[0]?.metadata.annotations?.[ADDRESS_ANNOTATION] ?? '';
      this.#addresses.set(machine_id, address, { ttl: address === '' ? UNKNOWN_MAX_AGE_MS : ADDRESS_MAX_AGE_MS });
      return address;
    } catch (cause) {
      if (!(cause instanceof ApiUnreachable)) throw cause;
      return '';
    } finally {
      this.#lookups -= 1;
    }
  }
}
