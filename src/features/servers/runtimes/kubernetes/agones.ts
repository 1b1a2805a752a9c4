import { type Static, Type } from '@sinclair/typebox';
import { makeGameServer } from './agones-manifest.ts';
import { type ClusterClient, ClusterRefusal, type ClusterRequest, ClusterUnreachable } from './cluster-client.ts';
import { LABELS, type PodManifest } from './pod-manifest.ts';
import type { PodObservation } from './pod-observation.ts';

const LIST_PAGE = '500';
const [NOT_FOUND, CONFLICT] = [404, 409];

/** The parts of a GameServer that Muster reads. */
const GameServer = Type.Object({
  metadata: Type.Object({
    labels: Type.Optional(Type.Record(Type.String(), Type.String())),
    deletionTimestamp: Type.Optional(Type.String()),
  }),
  status: Type.Optional(Type.Object({ state: Type.Optional(Type.String()) })),
});
const GameServerList = Type.Object({
  metadata: Type.Object({ continue: Type.Optional(Type.String()) }),
  items: Type.Array(GameServer),
});

/** The GameServers of a cluster that has Agones, each of which leads to a pod. */
export class Agones {
  readonly #path: string;

  constructor(
    private readonly client: ClusterClient,
    namespace: string,
  ) {
    this.#path = `/apis/agones.dev/v1/namespaces/${namespace}/gameservers`;
  }

  /** Lets Agones make a pod, unless it has been asked before. */
  async create(pod: PodManifest): Promise<void> {
    const expected = [NOT_FOUND, CONFLICT];
    const { status } = await this.client.call({
      method: 'POST',
      path: this.#path,
      body: makeGameServer(pod),
      expected,
    });
    if (status === NOT_FOUND) {
      throw new ClusterRefusal(
        status,
        'Agones is not installed in the cluster: tell the operator to install it, or to turn MUSTER_KUBERNETES_AGONES off',
      );
    }
    if (status === CONFLICT && !(await this.#read(pod.metadata.name))) {
      throw new ClusterUnreachable('Agones is still removing an earlier GameServer of this name');
    }
  }

  /**
   * Returns what Agones says of a server that has no pod; undefined if it was not asked for one, or if the cluster refuses to
   * say it: `create` reports a refusal to its server, and here it would hold up all others.
   */
  async observe(name: string): Promise<Extract<PodObservation, { is: 'pending' | 'ended' }> | undefined> {
    const game_server = await this.#read(name).catch(ignoreRefusal);
    if (!game_server) return undefined;
    const { state } = game_server.status ?? {};
    if (!FAILED_STATES.has(state)) return { is: 'pending', reason: 'Agones makes its pod', needs_operator: false };
    const reason = `Agones makes no pod for it (${state}): tell the operator to look at the events of ${name}`;
    return { is: 'ended', exit_code: null, exit_signal: null, reason };
  }

  /** Returns a GameServer; undefined if there is none, or if it is being removed. */
  async #read(name: string): Promise<Static<typeof GameServer> | undefined> {
    const request: ClusterRequest = { method: 'GET', path: `${this.#path}/${name}` };
    const game_server = await this.client.read(GameServer, request).catch(ignoreAbsence);
    return game_server?.metadata.deletionTimestamp === undefined ? game_server : undefined;
  }

  /** Returns the ids of the servers with a GameServer that a selector selects. */
  async list(selector: string): Promise<string[]> {
    const server_ids: string[] = [];
    let next: string | undefined = '';
    while (next !== undefined) {
      const query = { labelSelector: selector, limit: LIST_PAGE, ...(next !== '' && { continue: next }) };
      const request: ClusterRequest = { method: 'GET', path: this.#path, query };
      const page = await this.client.read(GameServerList, request).catch(ignoreAbsence);
      server_ids.push(...(page?.items ?? []).flatMap(({ metadata }) => metadata.labels?.[LABELS.server] ?? []));
      next = page?.metadata.continue || undefined;
    }
    return server_ids;
  }

  /** Removes a GameServer, if the cluster allows it. Agones then deletes its pod, if Muster has not done so. */
  async remove(name: string): Promise<void> {
    const request: ClusterRequest = { method: 'DELETE', path: `${this.#path}/${name}`, expected: [NOT_FOUND] };
    await this.client.call(request).catch(ignoreRefusal);
  }
}

/** The states of a GameServer that gets no pod. */
const FAILED_STATES: ReadonlySet<string | undefined> = new Set(['Error', 'Unhealthy', 'Shutdown']);

function ignoreRefusal(error: unknown): undefined {
  if (!(error instanceof ClusterRefusal)) throw error;
}

function ignoreAbsence(error: unknown): undefined {
  if (!(error instanceof ClusterRefusal && error.status === NOT_FOUND)) throw error;
}
