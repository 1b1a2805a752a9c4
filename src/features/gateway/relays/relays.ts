import type { Events } from '../../../platform/events.ts';
import { isCovered, type KeyPair, type ServedCertificates } from '../../../platform/http/ports/tls-port.ts';
import type { ServerPort } from '../../servers/servers.ts';
import { LOOPBACK } from '../server-host.ts';
import {
  CONNECTION_LIMITS,
  type CountedServer,
  openConnectionSlots,
  ServerSlots,
  scaleLimits,
} from '../server-slots.ts';
import type { Traffic } from '../traffic.ts';
import { listenAddressOf } from './listen-address.ts';
import type { ProxyProtocol } from './proxy-header.ts';
import { relayNames } from './relay-names.ts';
import { openTcpRelay, type Relay } from './tcp-relay.ts';
import { openUdpRelay } from './udp-relay.ts';

export interface RelaysOptions {
  /** The host of this machine in answers. */
  server_host: string;
  /** The domain of servers' names. */
  servers_domain: string;
  certificates: Pick<ServedCertificates, 'current'>;
  events: Events;
  traffic: Traffic;
  limits: { is_on: boolean; scale: number };
  /** How servers learn the addresses of TCP clients, if at all. */
  proxy_protocol: ProxyProtocol | undefined;
  /** Ends the game servers of this machine that took a TCP port. Returns how many. */
  endServersOnPort(port: number): Promise<number>;
}

/** A server of this machine. */
export interface RelayedServer extends CountedServer {
  ports: Record<string, ServerPort>;
}

/** The slots of the clients of one server. */
interface ClientSlots {
  server_id: string;
  connections: ServerSlots;
  flows: ServerSlots;
}

export type Relays = ReturnType<typeof createRelays>;

/** Creates the relays of this machine: public ports that lead to ports of its servers. */
export function createRelays(options: RelaysOptions) {
  const { server_host, servers_domain, certificates, events, traffic, limits, proxy_protocol, endServersOnPort } =
    options;
  const hostname = listenAddressOf(server_host);
  const opened = new Map<string, Relay[]>();
  /** Servers whose relays could not be opened, which was reported. */
  const failed = new Set<string>();
  const slots = openConnectionSlots();
  const slot_limits = scaleLimits(CONNECTION_LIMITS, limits);

  /** Opens the relays of a server: all of them or none. */
  async function open(server: RelayedServer): Promise<void> {
    const { server_id, ports } = server;
    const relayed = Object.values(ports).filter(({ relay_port }) => relay_port !== undefined);
    if (relayed.length === 0 || opened.has(server_id)) return;
    const of_server = relayed.flatMap(({ relay_port }) => relay_port ?? []);
    try {
      const relays = await openAll(server, relayed).catch(async (cause: unknown) => {
        // Once for each server, because the eviction reads all processes.
        if (failed.has(server_id) || !(await endServersOnPorts(of_server))) throw cause;
        return await openAll(server, relayed);
      });
      failed.delete(server_id);
      opened.set(server_id, relays);
    } catch (cause) {
      if (!failed.has(server_id)) events.emit({ event: 'relays_not_opened', server_id, ports: of_server, cause });
      failed.add(server_id);
    }
  }

  async function openAll({ server_id, game_id }: CountedServer, ports: ServerPort[]): Promise<Relay[]> {
    const openSlots = () => new ServerSlots(slot_limits, slots, game_id);
    const client_slots = { connections: openSlots(), flows: openSlots(), server_id };
    const relays: Relay[] = [];
    try {
      for (const port of ports) relays.push(await openRelay(port, client_slots));
      return relays;
    } catch (error) {
      for (const relay of relays) relay.close();
      throw error;
    }
  }

  /** Ends game servers that took one of the ports while the service was stopped. Returns whether there were any. */
  async function endServersOnPorts(ports: number[]): Promise<boolean> {
    let count = 0;
    for (const port of ports) count += await endServersOnPort(port);
    return count > 0;
  }

  async function openRelay(port: ServerPort, { connections, flows, server_id }: ClientSlots): Promise<Relay> {
    const { protocol, public_port = 0, relay_port = 0 } = port;
    const listen = { hostname, port: relay_port };
    const target = { hostname: LOOPBACK, port: public_port };
    const shared = { listen, target, traffic: traffic.ofServer(server_id) };
    if (protocol === 'udp') return await openUdpRelay({ ...shared, slots: flows });
    const readCertificate = protocol === 'tcp_tls' ? () => certificateOf(port) : undefined;
    return openTcpRelay({ ...shared, slots: connections, readCertificate, proxy_protocol });
  }

  /** Returns the certificate for the name in answers, or else any. */
  function certificateOf(port: ServerPort): KeyPair | undefined {
    const served = certificates.current();
    const name = relayNames(port, servers_domain).find((one) => isCovered(one, served));
    if (name === undefined) return served.values().next().value;
    return served.get(name.toLowerCase()) ?? served.get(name.toLowerCase().replace(/^[^.]+/, '*'));
  }

  function close(server_id: string): void {
    for (const relay of opened.get(server_id) ?? []) relay.close();
    opened.delete(server_id);
  }

  return {
    /**
     * Opens the relays of this machine's servers, and closes all others. Returns the servers whose relays could not be opened;
     * the next call tries again.
     */
    async openOnly(servers: readonly RelayedServer[]): Promise<ReadonlySet<string>> {
      const known = new Set(servers.map(({ server_id }) => server_id));
      for (const server_id of [...opened.keys()]) if (!known.has(server_id)) close(server_id);
      for (const server_id of [...failed]) if (!known.has(server_id)) failed.delete(server_id);
      for (const server of servers) await open(server);
      return failed;
    },
    /** Returns how many connections and clients are open. */
    count: (): number => [...opened.values()].flat().reduce((sum, relay) => sum + relay.count(), 0),
    /** How many may be open. */
    count_max: slots.max,
    [Symbol.dispose](): void {
      for (const server_id of [...opened.keys()]) close(server_id);
    },
  };
}
