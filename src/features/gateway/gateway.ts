import { ServiceError } from '../../platform/errors.ts';
import { hasBody } from '../../platform/http/body.ts';
import type { GatewayRequest } from '../../platform/http/gateway.ts';
import { asksForSocket, checkHandshake } from '../../platform/http/handshake.ts';
import { noteAnswer, noteAnswerEnd } from '../../platform/http/ports/connections-in-use.ts';
import type { WebRequest } from '../../platform/http/site.ts';
import type { UpgradingServer } from '../../platform/http/upgrades.ts';
import { inEachMinute } from '../../platform/limits/limit.ts';
import { Slots } from '../../platform/limits/slots.ts';
import { toUrlHost } from '../../platform/networks.ts';
import type { Feed } from '../../platform/watch/feed.ts';
import { type NamedPort, parsePortName } from '../port-names.ts';
import type { ServerReach, Servers } from '../servers/servers.ts';
import { toErrorPage } from './error-page.ts';
import type { Client } from './forwarded-headers.ts';
import { type NamedRequest, type PassedRequest, readHostName, readPathName } from './named-requests.ts';
import { createPassedSockets } from './passed-sockets.ts';
import type { Presence } from './presence.ts';
import { createReachableServers } from './reachable-servers.ts';
import { passRequest } from './request-passing.ts';
import { hostOf } from './server-host.ts';
import { CONNECTION_LIMITS, openConnectionSlots, SlotsOfServers, scaleLimits } from './server-slots.ts';
import { type Traffic, tooManyBytes } from './traffic.ts';

/** Limits of each namespace and address, which many players may share; counted in this process, which does the work. */
const REQUESTS_LIMIT = inEachMinute('gateway', 12_000, { counted: 'here' });
const SOCKETS_LIMIT = inEachMinute('gateway-sockets', 1_200, { counted: 'here' });
/** Requests in progress at a server, besides the share of its game. A school may load the pages of a game at once. */
const REQUEST_LIMITS = { open_max: Number.POSITIVE_INFINITY, open_of_address_max: 256, opened_per_second_max: 1_000 };
/** Limits requests for servers of which this process remembers nothing: each reads the database, and scanners guess names. */
const LOOKUPS_LIMIT = inEachMinute('gateway-lookups', 600, { by: 'address', counted: 'here' });
/** How long an answer, such as a stream of events, may be silent: the maximum of Bun. */
const SILENT_MAX_S = 255;
/** Bun neither receives nor sends a body with these methods. */
const WITHOUT_BODY = new Set(['GET', 'HEAD']);

export interface GatewayDependencies {
  servers: Pick<Servers, 'reach'>;
  subscribe: Feed['subscribe'];
  presence: Pick<Presence, 'admit' | 'overAmong'>;
  traffic: Traffic;
  limits: { is_on: boolean; scale: number };
  /** Requests in progress at all servers, which games share. */
  requests_max: number;
  /** This machine. The gateway reaches servers on it at the loopback address. */
  node_id: string;
  servers_domain: string;
}

type Running = Extract<ServerReach, { is: 'running' }>;

/** Creates the gateway: requests whose host or path names a port of a game server are answered by that server. */
export function createGateway(dependencies: GatewayDependencies) {
  const {
    servers,
    subscribe,
    presence,
    traffic: traffic_of_servers,
    limits,
    requests_max,
    node_id,
    servers_domain,
  } = dependencies;
  const reachable_servers = createReachableServers({ servers, subscribe });
  const sockets = createPassedSockets({ presence });
  const open_sockets = new SlotsOfServers(scaleLimits(CONNECTION_LIMITS, limits), openConnectionSlots());
  const in_progress = new SlotsOfServers(scaleLimits(REQUEST_LIMITS, limits), new Slots(requests_max));

  /** Answers a request for a game server: finds the server, counts the request, and passes it on. */
  async function respond(
    named: NamedRequest,
    web_request: WebRequest,
    listener: UpgradingServer | null,
  ): Promise<Response> {
    try {
      // First, because a request has no address once its connection is closed.
      const client: Client = {
        address: web_request.address,
        host: named.host,
        proto: web_request.is_https ? 'https' : 'http',
      };
      const { named_port, server } = await requireRunning(named, web_request);
      const { server_id } = named_port;
      const { method } = web_request.request;
      if (WITHOUT_BODY.has(method) && hasBody(web_request.request)) {
        throw new ServiceError('GATEWAY_BODY_NOT_ALLOWED', { method });
      }
      const traffic = traffic_of_servers.ofServer(server_id).ofClient(web_request.address);
      if (traffic.is_over_limit) throw tooManyBytes();
      const { server_address, has_presence } = httpTargetOf(server, named_port);
      const is_socket = asksForSocket(web_request.request);
      await web_request.count(is_socket ? SOCKETS_LIMIT : REQUESTS_LIMIT, server.namespace_id);
      if (is_socket) checkHandshake(web_request.request);
      const free = (is_socket ? open_sockets : in_progress).take(
        { server_id, game_id: server.game_id },
        web_request.address,
      );
      const answer = is_socket ? undefined : noteAnswer(web_request.request, listener);
      const onEnd = () => {
        if (answer) noteAnswerEnd(answer);
        free();
      };
      const { target, is_by_path } = named;
      const passed = { server_id, server_address, target, is_by_path, has_presence, client, traffic, onEnd };
      if (!is_socket) listener?.timeout(web_request.request, SILENT_MAX_S);
      return await (is_socket ? sockets.open(passed, web_request.request, listener) : pass(passed, web_request)).catch(
        (error: unknown) => {
          onEnd();
          throw error;
        },
      );
    } catch (error) {
      if (error instanceof ServiceError && wantsPage(web_request.request)) return toErrorPage(error);
      throw error;
    }
  }

  /** Returns the named port and its server. Throws GATEWAY_NAME_NOT_FOUND, GATEWAY_SERVER_NOT_READY and GATEWAY_SERVER_ENDED. */
  async function requireRunning(
    { name }: NamedRequest,
    web_request: WebRequest,
  ): Promise<{ named_port: NamedPort; server: Running }> {
    const named_port = parsePortName(name);
    const server = named_port && (await findServer(named_port.server_id, web_request));
    if (!named_port || !server) throw new ServiceError('GATEWAY_NAME_NOT_FOUND', { name });
    const { server_id } = named_port;
    if (server.is === 'not_ready') throw new ServiceError('GATEWAY_SERVER_NOT_READY', { server_id });
    if (server.is === 'ended') throw new ServiceError('GATEWAY_SERVER_ENDED', { server_id, how: server.how });
    return { named_port, server };
  }

  async function findServer(server_id: string, web_request: WebRequest): Promise<ServerReach | undefined> {
    const known = reachable_servers.recall(server_id);
    if (known) return known.server;
    await web_request.countAddress(LOOKUPS_LIMIT);
    return await reachable_servers.read(server_id);
  }

  /**
   * Returns where the gateway reaches a named port of a server, and whether it reports the players there. Throws
   * GATEWAY_NAME_NOT_FOUND for a port without http, and GATEWAY_SERVER_NOT_READY while the host of its machine is not known.
   */
  function httpTargetOf(
    server: Running,
    { server_id, label }: NamedPort,
  ): Pick<PassedRequest, 'server_address' | 'has_presence'> {
    const [, port] = Object.entries(server.ports).find(([name]) => name === label) ?? [];
    const is_http = port?.routing === 'game_guard' && (port.protocol === 'http' || port.protocol === 'https');
    if (!is_http || port.public_port === undefined) {
      throw new ServiceError('GATEWAY_NAME_NOT_FOUND', { name: `${server_id}-${label}` });
    }
    const host = hostOf({ node_id: server.node_id, host: port.public_hostname }, node_id);
    if (host === undefined) throw new ServiceError('GATEWAY_SERVER_NOT_READY', { server_id });
    return { server_address: `${toUrlHost(host)}:${port.public_port}`, has_presence: port.presence === 'gateway' };
  }

  async function pass(passed: PassedRequest, web_request: WebRequest) {
    if (passed.has_presence) throw new ServiceError('GATEWAY_SOCKET_REQUIRED', {});
    return await passRequest(passed, web_request.request, { onBodySent: () => web_request.noteBodyRead() });
  }

  function toRequest(named: NamedRequest | undefined): GatewayRequest | undefined {
    return named && { respond: (web_request, listener) => respond(named, web_request, listener) };
  }

  return {
    sockets,
    findByHost: ({ url }: Request): GatewayRequest | undefined => toRequest(readHostName(url, servers_domain)),
    findByPath: ({ url }: Request): GatewayRequest | undefined => toRequest(readPathName(url)),
    /** Returns how many requests to game servers are in progress, and how many of their WebSockets are open. */
    count: () => ({ requests: in_progress.taken, sockets: sockets.count() }),
    /** Maximum number of WebSockets to game servers at one time. */
    sockets_max: open_sockets.max,
    stop: (): void => sockets.stopAll(),
    [Symbol.dispose]: (): void => reachable_servers[Symbol.dispose](),
  };
}

/** Returns whether the client accepts HTML, as a browser does that shows the answer to its user. */
function wantsPage({ headers }: Request): boolean {
  return headers.get('accept')?.includes('text/html') ?? false;
}
