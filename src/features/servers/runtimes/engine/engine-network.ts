import { connect, createServer, type Server } from 'node:net';
import { type Static, Type } from '@sinclair/typebox';
import { assert } from '../../../../platform/errors.ts';
import { Slots } from '../../../../platform/limits/slots.ts';
import { toUrlHost } from '../../../../platform/networks.ts';
import { hasErrorCode } from '../../../../platform/system/system-errors.ts';
import { readApiAddress, replaceAddress } from '../api-address.ts';
import type { EngineClient } from './engine-client.ts';
import { LABELS } from './engine-container.ts';

const LISTEN_POLL_MS = 10;
/** To the API, all of them are connections of this process, so they stay below its limit for a client (2,048). */
const FORWARDED_MAX = 1_024;
const NAME_CHARACTERS = 12;
const NAME_SUFFIX_CHARACTERS = 8;

const Network = Type.Object({
  Id: Type.String(),
  Created: Type.String(),
  IPAM: Type.Object({ Config: Type.Array(Type.Object({ Gateway: Type.Optional(Type.String()) })) }),
});

/** The network that containers of an engine share. */
export interface EngineNetwork {
  /** The name by which the engine finds it. */
  name: string;
  /** The address of this machine inside the network. */
  gateway: string | undefined;
}

/** Podman's own network, because its networks cannot keep containers from each other. */
const PODMAN_NETWORK = 'bridge';

/**
 * Makes a name that no other network has. Docker looks a network up by its name when a container starts, also if it was
 * given the id, and refuses if two have the same.
 */
const makeNetworkName = (node_id: string) =>
  `muster-${node_id.replaceAll('-', '').slice(0, NAME_CHARACTERS)}-${crypto.randomUUID().slice(0, NAME_SUFFIX_CHARACTERS)}`;

const describe = ({ IPAM }: Static<typeof Network>, name: string): EngineNetwork => ({
  name,
  gateway: IPAM.Config.flatMap(({ Gateway }) => Gateway ?? [])[0],
});

interface NetworkOptions {
  client: EngineClient;
  node_id: string;
}

/** The network of this machine's Muster in an engine. One step at a time, so that one is created and not several. */
export class EngineNetworks {
  #last_step: Promise<unknown> = Promise.resolve();

  constructor(private readonly options: NetworkOptions) {}

  /** Returns the network, after creating it if needed. In Docker's, containers do not reach each other. */
  async ensure({ is_podman }: { is_podman: boolean }): Promise<EngineNetwork> {
    return await this.#afterOthers(async () => {
      if (is_podman) {
        const request = { method: 'GET', path: `/networks/${PODMAN_NETWORK}` } as const;
        return describe(await this.options.client.read(Network, request), PODMAN_NETWORK);
      }
      const network = (await this.#list())[0] ?? (await this.#create());
      return describe(network, network.Id);
    });
  }

  /** Removes the network if nothing needs it. */
  async removeUnless(isNeeded: () => boolean): Promise<void> {
    await this.#afterOthers(async () => {
      if (isNeeded()) return;
      for (const { Id } of await this.#list()) {
        // A container that is not Muster's may use it.
        await this.options.client.call({ method: 'DELETE', path: `/networks/${Id}`, expected: [403, 404, 409] });
      }
    });
  }

  /**
   * Lists Muster's networks, the oldest first. There are two if the engine still performed a call of a killed service.
   */
  async #list() {
    const { client, node_id } = this.options;
    const filters = JSON.stringify({ label: [`${LABELS.machine}=${node_id}`] });
    const listed = await client.read(Type.Array(Network), { method: 'GET', path: '/networks', query: { filters } });
    return listed.toSorted((one, other) => (one.Created < other.Created ? -1 : 1));
  }

  async #create() {
    const { client, node_id } = this.options;
    const own = { Name: makeNetworkName(node_id), Driver: 'bridge', Labels: { [LABELS.machine]: node_id } };
    const body = { ...own, Options: { 'com.docker.network.bridge.enable_icc': 'false' } };
    await client.call({ method: 'POST', path: '/networks/create', body });
    const [network] = await this.#list();
    assert(network, 'a network is listed once it is created');
    return network;
  }

  async #afterOthers<Result>(step: () => Promise<Result>): Promise<Result> {
    const result = this.#last_step.then(step);
    this.#last_step = result.catch(() => {});
    return await result;
  }
}

/** The service's API, for containers. */
export interface ApiForward {
  gateway: string | undefined;
  /** Replaces the API's address in a server's variables by the one at which its container reaches it. */
  replaceAddress(environment: Record<string, string>): Record<string, string>;
  /** Resolves once containers reach the API, or after one more attempt once the signal is aborted. */
  ready(signal: AbortSignal): Promise<void>;
  close(): void;
}

/**
 * Passes connections to the gateway of the containers' network on to the API, which may listen at the machine's loopback
 * address only. Containers share them fairly, by their addresses. The gateway's address may not exist before the first container starts.
 */
export function forwardApi(api_url: string, gateway: string | undefined): ApiForward {
  const { host, port, is_loopback } = readApiAddress(api_url);
  if (!is_loopback || gateway === undefined) {
    return { gateway, replaceAddress: (environment) => environment, ready: async () => {}, close() {} };
  }
  const inside_url = `http://${toUrlHost(gateway)}:${port}`;
  const slots = new Slots(FORWARDED_MAX);
  let is_listening = false;
  let listener: Server | undefined;

  async function listen(): Promise<boolean> {
    // A client that has sent everything may still wait for the answer.
    const server = createServer({ allowHalfOpen: true }, (socket) => {
      const { remoteAddress: container = '' } = socket;
      if (!slots.hasRoomFor(container)) return void socket.destroy();
      slots.take(container);
      const upstream = connect({ port, host, allowHalfOpen: true });
      socket.on('error', () => upstream.destroy());
      upstream.on('error', () => socket.destroy());
      socket.pipe(upstream).pipe(socket);
      socket.on('close', () => {
        slots.free(container);
        upstream.destroy();
      });
      upstream.on('close', () => socket.destroy());
    });
    const { promise, resolve, reject } = Promise.withResolvers<boolean>();
    server.once('error', (error) => {
      if (hasErrorCode(error, 'EADDRNOTAVAIL')) resolve(false);
      // The API itself listens on all addresses.
      else if (hasErrorCode(error, 'EADDRINUSE')) resolve(true);
      else reject(error);
    });
    server.listen({ host: gateway, port }, () => {
      server.unref();
      listener = server;
      resolve(true);
    });
    return await promise;
  }

  return {
    gateway,
    close: () => void listener?.close(),
    replaceAddress: (environment) => replaceAddress(environment, { from: api_url, to: inside_url }),
    async ready(signal) {
      for (;;) {
        // The address exists once the container has started, so the attempt after that counts.
        const is_last = signal.aborted;
        is_listening ||= await listen();
        if (is_listening || is_last) return;
        await Bun.sleep(LISTEN_POLL_MS);
      }
    },
  };
}
