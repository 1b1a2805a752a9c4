import { createHmac } from 'node:crypto';
import type { Server } from 'bun';
import { LRUCache } from 'lru-cache';
import { isSameSecret } from '../../../../platform/constant-time.ts';
import { StartError } from '../../../../platform/errors.ts';
import { noteSocket, noteSocketEnd } from '../../../../platform/http/ports/connections-in-use.ts';
import { describeListenFailure } from '../../../../platform/http/ports/listen.ts';
import { toUrlHost } from '../../../../platform/networks.ts';
import { awaitOpening } from './build-opening.ts';
import { BuildReads, type Pack } from './build-reads.ts';
import type { ImageRegistry } from './image-registry.ts';
import { PodConnection } from './pod-connection.ts';

/** Enough for a piece of output with the times of its lines. */
const MESSAGE_BYTES_MAX = 1_024 ** 2;
/** Connections of a server in a period. A hostile server can connect in the name of its pod, and each wakes a loop. */
const CONNECTIONS_MAX = 10;
const CONNECTIONS_PERIOD_MS = 10_000;
const SERVERS_MAX = 20_000;
/** Pods send no bodies. */
const BODY_BYTES_MAX = 1_024;
const IDLE_SECONDS = 60;
/** Time in which a build is opened, and in which a pod reads a piece of it. */
const BUILD_IDLE_SECONDS = 120;

export interface PodPortOptions {
  /** The address at which pods reach this process, or any of those that share a cluster. */
  pods_host: string;
  port: number;
  /** Where to listen, by default at all addresses. */
  listen_address?: string | undefined;
  /** The key of the pods' tokens. A token is valid for one server. */
  key: string;
  /** What nodes pull images from, if they can. */
  registry?: Pick<ImageRegistry, 'answer'> | undefined;
  /** Returns what packs the files of a server's build as a tar; undefined if no server with such files starts. */
  openBuild(server_id: string): Promise<Pack | undefined>;
  /** Reports a build that a pod asked for, and that could not be opened. */
  onFailed?(cause: unknown): void;
  reads?: BuildReads | undefined;
  /** Time for which a request waits for its build. */
  open_within_ms?: number | undefined;
}

/** The runtime of the pods: says whether this process has them, and is notified of their changes. */
export interface PodListener {
  /** Returns whether this process has the pods now. */
  mayAct(): boolean;
  /** Reports that a server may have changed. */
  onChange(): void;
}

/**
 * The port to which pods connect: they fetch their builds, and report their output and the end of their programs. Nodes
 * pull images from it.
 */
export interface PodPort extends AsyncDisposable {
  /** The address of the port for a server's pod. Never throws: the pod may connect later. */
  addressOf(server_id: string): { socket: string; build: string; token: string };
  connectionOf(server_id: string): PodConnection | undefined;
  /** Lets pods connect. Until then, pods get only their builds, because another process may have the pods. */
  serve(listener: PodListener): void;
  /** Ends what `serve` began, and closes all connections. The pods then look for the process that has them. */
  stopServing(listener: PodListener): void;
}

interface PodSocketData {
  server_id: string;
  connection: PodConnection | undefined;
}

/** Opens the port for pods. Throws StartError if it is in use. */
export function openPodPort(options: PodPortOptions): PodPort {
  const { pods_host, port, listen_address, key, registry, openBuild, onFailed, open_within_ms } = options;
  const { reads = new BuildReads() } = options;
  const connections = new Map<string, PodConnection>();
  /** The ids of the servers whose pods are downloading a build. */
  const downloads = new Set<string>();
  /** How often the pods of servers have connected in the current period. */
  const connection_counts = new LRUCache<string, number>({ max: SERVERS_MAX, ttl: CONNECTIONS_PERIOD_MS });
  let listener: PodListener | undefined;
  const tokenOf = (server_id: string) => createHmac('sha256', key).update(server_id).digest('base64url');

  function isAllowed(request: Request, server_id: string): boolean {
    return isSameSecret(request.headers.get('authorization') ?? '', `Bearer ${tokenOf(server_id)}`);
  }

  async function answer(request: Request, server: Server<PodSocketData>): Promise<Response | undefined> {
    const [, pods, server_id = '', part, ...more] = new URL(request.url).pathname.split('/');
    const is_known = pods === 'pods' && more.length === 0 && request.method === 'GET';
    // An unknown address and a wrong token look alike.
    if (!is_known || !isAllowed(request, server_id)) return new Response('not found\n', { status: 404 });
    if (part === 'socket') {
      if (!listener?.mayAct()) return unavailable('another process has this pod');
      const count = connection_counts.get(server_id) ?? 0;
      if (count >= CONNECTIONS_MAX) return unavailable('this pod connects too often, or did not keep to the rules');
      connection_counts.set(server_id, count + 1, { noUpdateTTL: true });
      const data: PodSocketData = { server_id, connection: undefined };
      noteSocket(data, request, server);
      if (server.upgrade(request, { data })) return undefined;
      noteSocketEnd(data);
      return new Response('a WebSocket is expected\n', { status: 426 });
    }
    if (part !== 'build') return new Response('not found\n', { status: 404 });
    server.timeout(request, BUILD_IDLE_SECONDS);
    return await sendBuild(server_id);
  }

  /** Sends the build of a server, once at a time: its program has the token too, and each download packs the whole build. */
  async function sendBuild(server_id: string): Promise<Response> {
    if (downloads.has(server_id)) return unavailable('this build is being read');
    downloads.add(server_id);
    const onClosed = () => void downloads.delete(server_id);
    const opening = await awaitOpening(openBuild(server_id), { within_ms: open_within_ms, onFailed });
    const build = opening.is === 'open' ? reads.open(opening.build, { onClosed }) : undefined;
    if (build) return new Response(build, { headers: { 'content-type': 'application/x-tar' } });
    onClosed();
    return unavailable(opening.is === 'open' ? 'too many builds are being read' : NO_BUILD[opening.is]);
  }

  const address = { host: listen_address ?? (pods_host.includes(':') ? '::' : '0.0.0.0'), port };
  const serve = () =>
    Bun.serve<PodSocketData>({
      hostname: address.host,
      port,
      fetch: (request, server) => registry?.answer(request, server) ?? answer(request, server),
      maxRequestBodySize: BODY_BYTES_MAX,
      development: false,
      error: () => new Response('the request failed\n', { status: 500 }),
      websocket: {
        maxPayloadLength: MESSAGE_BYTES_MAX,
        idleTimeout: IDLE_SECONDS,
        perMessageDeflate: false,
        open(socket) {
          const { server_id } = socket.data;
          if (!listener?.mayAct()) return socket.close();
          const connection = new PodConnection(socket);
          // This process may not have noticed yet that the earlier connection has ended.
          connections.get(server_id)?.close();
          socket.data.connection = connection;
          connections.set(server_id, connection);
          listener?.onChange();
        },
        message(socket, text) {
          try {
            if (socket.data.connection?.receive(String(text))) listener?.onChange();
          } catch {
            socket.data.connection?.fail();
          }
        },
        close({ data }) {
          noteSocketEnd(data);
          const { server_id, connection } = data;
          connection?.rejectCalls();
          if (connections.get(server_id) === connection) connections.delete(server_id);
          // Its pod may connect again in the next period. Meanwhile its server can be killed without it.
          if (connection?.has_failed) connection_counts.set(server_id, CONNECTIONS_MAX);
          listener?.onChange();
        },
      },
    });
  const port_server = listen(address, serve);

  return {
    addressOf(server_id) {
      const place = `${toUrlHost(pods_host)}:${port_server.port}/pods/${server_id}`;
      return { socket: `ws://${place}/socket`, build: `http://${place}/build`, token: tokenOf(server_id) };
    },
    connectionOf(server_id) {
      const connection = connections.get(server_id);
      return connection?.has_failed ? undefined : connection;
    },
    serve(own) {
      listener = own;
    },
    stopServing(own) {
      if (listener !== own) return;
      listener = undefined;
      for (const connection of connections.values()) connection.close();
    },
    [Symbol.asyncDispose]: () => port_server.stop(true),
  };
}

/** Why a server gets no build. */
const NO_BUILD = {
  absent: 'this server does not start',
  late: 'the build is being unpacked',
  failed: 'the build cannot be read',
} as const;
const unavailable = (message: string) => new Response(`${message}\n`, { status: 503 });

function listen(address: { host: string; port: number }, serve: () => Server<PodSocketData>): Server<PodSocketData> {
  try {
    return serve();
  } catch (cause) {
    throw new StartError(describeListenFailure(cause, address, 'MUSTER_KUBERNETES_PORT'), { cause });
  }
}
