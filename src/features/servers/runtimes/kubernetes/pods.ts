import { setTimeout } from 'node:timers/promises';
import type { Static } from '@sinclair/typebox';
import { type ClusterClient, ClusterRefusal, type ClusterRequest, ClusterUnreachable } from './cluster-client.ts';
import { Pod, PodEvent, PodList } from './pod-shapes.ts';

const LIST_PAGE = '500';
const BACKOFF_FIRST_MS = 200;
const BACKOFF_MAX_MS = 10_000;
/** A watch without events that ends sooner has failed, because an API server keeps it open for minutes. */
const WATCH_MIN_MS = 1_000;
const [NOT_FOUND, CONFLICT, GONE] = [404, 409, 410];

interface PodsOptions {
  client: ClusterClient;
  namespace: string;
  /** Selects the pods of this machine. */
  selector: string;
  onChange(): void;
  /** Reports that the API server does not answer: once, and again only after it has answered. */
  onLost(cause: unknown): void;
  signal: AbortSignal;
}

/** The pods of this machine in a cluster: a copy that a watch keeps current, and the calls that change them. */
export class Pods {
  readonly #by_name = new Map<string, Pod>();
  /** The uids of pods that this process removed and whose removal the watch has not reported yet. */
  readonly #removed = new Set<string>();
  readonly #path: string;
  /** The latest version of a list or a watch. A list with an earlier one shows that the cluster was restored. */
  #version = 0;
  /** Whether the pods have been listed at least once. */
  is_loaded = false;
  /** Resolves when the watch has ended, after the signal was aborted. */
  readonly stopped: Promise<void>;

  constructor(private readonly options: PodsOptions) {
    this.#path = `/api/v1/namespaces/${options.namespace}/pods`;
    this.stopped = this.#keepCurrent();
  }

  find(name: string): Pod | undefined {
    return this.#by_name.get(name);
  }

  list(): Pod[] {
    return [...this.#by_name.values()];
  }

  /** Creates a pod. Returns false if there is one with its name. */
  async create(manifest: object): Promise<boolean> {
    try {
      this.#put(await this.options.client.read(Pod, { method: 'POST', path: this.#path, body: manifest }));
      return true;
    } catch (cause) {
      if (cause instanceof ClusterRefusal && cause.status === CONFLICT) return false;
      throw cause;
    }
  }

  /** Reads a pod anew. Returns undefined if there is none. */
  async read(name: string): Promise<Pod | undefined> {
    try {
      const pod = await this.options.client.read(Pod, { method: 'GET', path: `${this.#path}/${name}` });
      this.#put(pod);
      return pod;
    } catch (cause) {
      if (cause instanceof ClusterRefusal && cause.status === NOT_FOUND) return undefined;
      throw cause;
    }
  }

  /**
   * Asks the cluster to end a pod. Its finalizer keeps it in the list. A pod with a known uid is left alone if another process
   * has replaced it.
   */
  async end(name: string, grace_s: number, uid = this.find(name)?.metadata.uid): Promise<void> {
    const preconditions = uid === undefined ? {} : { preconditions: { uid } };
    // With a body, the API server ignores the query.
    const body = { kind: 'DeleteOptions', apiVersion: 'v1', gracePeriodSeconds: grace_s, ...preconditions };
    await this.#change({ method: 'DELETE', path: `${this.#path}/${name}`, body });
  }

  /** Removes a pod at once, also one that is still ending. */
  async remove(name: string, finalizer: string): Promise<void> {
    const uid = this.find(name)?.metadata.uid;
    await this.end(name, 0, uid);
    const metadata = { '$deleteFromPrimitiveList/finalizers': [finalizer], ...(uid !== undefined && { uid }) };
    await this.#change({ method: 'PATCH', path: `${this.#path}/${name}`, body: { metadata } });
    if (uid !== undefined) this.#removed.add(uid);
    if (this.find(name)?.metadata.uid === uid) this.#by_name.delete(name);
  }

  /** Changes a pod. Does nothing if it is gone, or if its uid is another one, which is a conflict. */
  async #change(request: ClusterRequest): Promise<void> {
    await this.options.client.call({ ...request, expected: [NOT_FOUND, CONFLICT] });
  }

  /**
   * Lists and watches, and lists anew after each failure: the API server remembers changes for some minutes only, and may have
   * been set back to an earlier state.
   */
  async #keepCurrent(): Promise<void> {
    const { signal, onLost } = this.options;
    let version: string | undefined;
    let is_reported = false;
    for (let failures = 0; !signal.aborted; ) {
      let watching_since = Number.POSITIVE_INFINITY;
      try {
        version ??= await this.#listAll();
        version = await this.#watch(version, () => {
          watching_since = performance.now();
        });
        failures = 0;
        is_reported = false;
      } catch (cause) {
        if (signal.aborted) return;
        // A load balancer may cut a watch that works. If the API server is away, the list fails next.
        const has_worked = performance.now() - watching_since >= WATCH_MIN_MS;
        failures = has_worked ? 0 : failures + 1;
        version = undefined;
        if (failures === 0) is_reported = false;
        const is_forgotten = cause instanceof ClusterRefusal && cause.status === GONE;
        if (failures > 0 && !is_forgotten && !is_reported) {
          is_reported = true;
          onLost(cause);
        }
        const pause = Math.min(BACKOFF_MAX_MS, BACKOFF_FIRST_MS * 2 ** (failures - 1));
        await setTimeout(pause, undefined, { signal }).catch(() => {});
      }
    }
  }

  /** Reads the pods that a selector selects, which need not be those of this machine. */
  async select(selector: string): Promise<{ pods: Pod[]; version: string }> {
    const pods: Pod[] = [];
    let version = '';
    let next: string | undefined = '';
    while (next !== undefined) {
      const query = { labelSelector: selector, limit: LIST_PAGE, ...(next !== '' && { continue: next }) };
      const request = { method: 'GET', path: this.#path, query, signal: this.options.signal } as const;
      const page: Static<typeof PodList> = await this.options.client.read(PodList, request);
      pods.push(...page.items);
      version = page.metadata.resourceVersion;
      next = page.metadata.continue || undefined;
    }
    return { pods, version };
  }

  /** Reads all pods of this machine. Returns the version after which to watch. */
  async #listAll(): Promise<string> {
    const { pods, version } = await this.select(this.options.selector);
    const listed = new Map(pods.map((pod) => [pod.metadata.name, pod]));
    if (Number(version) < this.#version) {
      this.#by_name.clear();
      this.#version = 0;
    }
    const uids = new Set([...listed.values()].map(({ metadata }) => metadata.uid));
    for (const uid of this.#removed) if (!uids.has(uid)) this.#removed.delete(uid);
    for (const [name, { metadata }] of this.#by_name) {
      // A pod that was created after the list is not in it.
      const is_gone = !listed.has(name) && Number(metadata.resourceVersion) <= Number(version);
      if (is_gone) this.#by_name.delete(name);
    }
    for (const pod of listed.values()) this.#put(pod);
    this.#version = Number(version);
    this.is_loaded = true;
    this.options.onChange();
    return version;
  }

  async #watch(from: string, onBegin: () => void): Promise<string> {
    const { client, selector, signal, onChange } = this.options;
    const query = { labelSelector: selector, resourceVersion: from };
    const begun = performance.now();
    let version = from;
    for await (const event of client.watch(PodEvent, { path: this.#path, query }, { signal, onBegin })) {
      if (event.type === 'ERROR')
        throw new ClusterRefusal(event.object.code ?? 0, event.object.message ?? 'unknown error');
      version = event.object.metadata.resourceVersion;
      this.#version = Number(version);
      if (event.type === 'BOOKMARK') continue;
      const { name, uid } = event.object.metadata;
      if (event.type !== 'DELETED') this.#put(event.object);
      else if (this.#by_name.get(name)?.metadata.uid === uid) this.#by_name.delete(name);
      if (event.type === 'DELETED') this.#removed.delete(uid);
      onChange();
    }
    if (version === from && performance.now() - begun < WATCH_MIN_MS) {
      throw new ClusterUnreachable('the API server of the cluster ends watches at once');
    }
    return version;
  }

  /** Keeps the latest state of a pod. The answer to a call may arrive before or after the event of the watch. */
  #put(pod: Pod): void {
    const { name, uid, resourceVersion } = pod.metadata;
    if (this.#removed.has(uid)) return;
    const known = this.#by_name.get(name);
    const is_older = known?.metadata.uid === uid && Number(resourceVersion) < Number(known.metadata.resourceVersion);
    if (!is_older) this.#by_name.set(name, pod);
  }
}
