import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { openBase } from './base.ts';
import { openFeatures } from './composition.ts';
import type { Config } from './config.ts';
import type { BootstrapResult } from './features/bootstrap/bootstrap.ts';
import { openFront } from './front.ts';
import { type LocalParts, openLocalParts } from './local-parts.ts';
import { type Clock, systemClock } from './platform/clock.ts';
import type { DataDirectory } from './platform/data-directory.ts';
import { checkDatabase } from './platform/database/check.ts';
import type { DatabaseAddress } from './platform/database/database.ts';
import { isShortOfSpace } from './platform/disk-space.ts';
import { StartError } from './platform/errors.ts';
import { createLog, type Events } from './platform/events.ts';
import type { Work } from './platform/feature.ts';
import { startLimitingConnections } from './platform/http/connection-limits.ts';
import type { PortHandlers } from './platform/http/listen.ts';
import { type KeptEvents, keepEvents } from './platform/kept-events.ts';
import { forEachAtOnce } from './platform/pacing.ts';
import { retryUntilAvailable } from './platform/unavailability.ts';
import { readEpoch } from './platform/watch/versions.ts';
import { openPublicPorts } from './public-ports.ts';

export interface Service extends AsyncDisposable {
  bootstrap_result: BootstrapResult;
  /** The path of the file with the administrator's token, which only our user can read. */
  administrator_token_file: string;
  /** Makes a link that opens the hub, logged in as the administrator. It works once. */
  createHubLink(): Promise<string>;
  /** Stops this machine from taking game servers. Servers that wait for it end when the service closes. */
  stopTakingServers(): Promise<void>;
  /**
   * Asks the game servers of this machine to end, and kills those that do not end in time. Also ends servers that wait for
   * this machine and that no other machine takes.
   */
  stopServers(): Promise<void>;
}

interface ServiceOptions {
  /** Tests set the time. */
  clock?: Clock;
  events?: KeptEvents;
  /** Replaces the database of the configuration, for tests. */
  database_address?: DatabaseAddress;
  /** Tests recheck rarely, so that they notice a lost notification. */
  feed_recheck_ms?: number;
  /** Ends a start that waits for its database, which then throws the signal's reason. */
  signal?: AbortSignal;
}

/** A start that takes longer answers requests with "not ready", as while the database is migrated or recovers. */
const ANSWERS_AFTER_MS = 1_000;
/** How long a stop waits for steps of the background work, but at most for half of `lost_after_ms`. */
const STEPS_END_WITHIN_MS = 15_000;

/**
 * Opens the parts of the service in order and serves. A start that takes long answers requests that it is not ready.
 * Disposing closes the parts in reverse: it refuses new requests, answers waiting ones, ends the background work and then
 * closes the database. A failed start closes the parts that are open. Throws StartError.
 */
export async function openService(config: Config, options: ServiceOptions = {}): Promise<Service> {
  const { events = keepEvents(createLog(config.log)), signal } = options;
  await using opened = new AsyncDisposableStack();
  const local_parts = opened.use(await openLocalParts(config, events));
  const not_ready_timer = setTimeout(() => void local_parts.answerStarting(), ANSWERS_AFTER_MS);
  const service = await retryUntilAvailable(() => openAll(config, { ...options, events, local_parts }), {
    events,
    signal,
    onUnavailability: local_parts.answerNotReady,
  }).finally(() => clearTimeout(not_ready_timer));
  opened.use(service);
  const everything = opened.move();
  return { ...service, [Symbol.asyncDispose]: () => everything.disposeAsync() };
}

async function openAll(
  config: Config,
  { events, local_parts, ...options }: ServiceOptions & { events: KeptEvents; local_parts: LocalParts },
): Promise<Service> {
  const { clock = systemClock } = options;
  const { data, runtime, ip_database } = local_parts;
  await using opened = new AsyncDisposableStack();

  const { base, storage } = opened.use(await openBase(config, { ...options, clock, events, data }));
  const { database, watch } = base;
  const composed = opened.use(
    await openFeatures(config, { base, storage, local_parts, kept_events: events, signal: options.signal }),
  );
  const { features, servers, machines, machine, bootstrap, certificates, hub, operator } = composed;
  opened.defer(async () => {
    const has_servers = await servers.isAnyOn(machine.node_id).catch(() => true);
    // If this fails, others declare the machine lost after `lost_after_ms` instead of `rest_ms`.
    await machines
      .stop({ has_servers })
      .catch((cause: unknown) => events.emit({ event: 'lease_failed', step: 'stop', cause }));
  });
  const administrator_token_file = writeToken('administrator-token', bootstrap.administrator_token, { data, events });
  writeToken('metrics-token', bootstrap.metrics_token, { data, events });
  const front = opened.use(
    await openFront(config, {
      ...base,
      tenants: composed.tenants,
      audit: composed.audit,
      sites: composed.cdn,
      gateway: composed.gateway,
      // Players call the last features, so the documents list these first.
      routes: features.toReversed().flatMap(({ routes = [] }) => routes),
      checks: [() => checkDatabase(database), storage.database_space.check],
      warnings: [async () => storage.warning, storage.space.warn, ...operator.warnings],
      readIsolation: () => runtime.isolation,
      epoch: await readEpoch(database.queries),
    }),
  );

  const { watchers_max } = config.watch;
  operator.addLimits(() => {
    const { watchers, polls, sockets } = front.countWatchers();
    const build_reads = servers.countBuildReads?.();
    return [
      { name: 'watchers', used: watchers, max: watchers_max },
      { name: 'polls', used: polls },
      { name: 'sockets', used: sockets, max: config.sockets.sockets_max },
      ...(build_reads ? [{ name: 'build_reads' as const, ...build_reads }] : []),
    ];
  });

  const work: Work[] = [];
  const working = new AbortController();
  opened.defer(async () => {
    working.abort();
    const stopped = Promise.all(work.map((one) => one.stopped));
    // The heartbeat of this machine has ended. If a step took too long, other machines would declare this one lost,
    // with its game servers.
    const within_ms = Math.min(STEPS_END_WITHIN_MS, config.machines.lost_after_ms / 2);
    await Promise.race([stopped, pause(within_ms, undefined, { ref: false })]);
    // Game servers that keep running must not get the ports.
    if (!(await servers.isAnyOn(machine.node_id).catch(() => true))) local_parts.releasePorts();
  });
  let has_stopped_taking = false;
  opened.defer(async () => {
    if (!has_stopped_taking) return;
    // Ends the servers of lobbies that were created meanwhile.
    const stopped = servers.endWaitingServers(machine.datacenter_id);
    await stopped.catch((cause: unknown) => events.emit({ event: 'servers_stop_failed', cause }));
  });
  const handlers: PortHandlers = {
    fetch: (request, server) => servers.answerNodes?.(request, server) ?? front.fetch(request, server),
    websocket: front.websocket,
    freePort: composed.freePort,
  };
  await local_parts.setHandlers(handlers);
  let public_ports: AsyncDisposable | undefined;
  opened.defer(async () => {
    await front.drain();
    front.stop();
    watch.release();
    await Promise.all([local_parts.stopAnswering(), public_ports?.[Symbol.asyncDispose]()]);
  });
  opened.defer(async () => {
    // Runs before the players leave, which may take long. If no other process uses the cluster, this one keeps the pods
    // until its background work ends.
    await servers
      .leaveSharedCluster()
      .catch((cause: unknown) => events.emit({ event: 'lease_failed', step: 'release', cause }));
  });
  const { hold_files } = local_parts;
  public_ports = await openPublicPorts(config, { certificates, handlers, hold_files, events });

  // Starts after the port is open, so that work that has piled up does not delay the first requests.
  const { signal } = working;
  const { host, port, tls, kubernetes, trusted_proxies, connections_per_address_max } = config;
  const ports = [port, tls.https_port, tls.http_port, kubernetes?.port].filter((one) => one !== undefined);
  for (const { startWork } of features) work.push(...(startWork?.(signal) ?? []));
  work.push(
    storage.space.startWatching(signal),
    startLimitingConnections({ host, ports, trusted_proxies, connections_per_address_max, events, signal }),
  );
  if (ip_database) work.push(ip_database.startReading({ signal, events }));

  const everything = opened.move();
  return {
    bootstrap_result: bootstrap,
    administrator_token_file,
    createHubLink: async () => (await hub.createLink(bootstrap.administrator_token)).url,
    async stopTakingServers() {
      has_stopped_taking = true;
      await machines.stopTakingServers();
    },
    async stopServers() {
      const cluster_id = machines.clusterId();
      const has_cluster_alone = cluster_id !== undefined && !(await machines.isClusterShared().catch(() => true));
      const node_ids = [machine.node_id, ...(has_cluster_alone ? [cluster_id] : [])];
      await forEachAtOnce(node_ids, node_ids.length, (node_id) => servers.stopAllOf({ ...machine, node_id }));
    },
    [Symbol.asyncDispose]: () => everything.disposeAsync(),
  };
}

/** Writes a token for operators to a file. On a full disk, the file of an earlier start stays: its token is valid too. */
function writeToken(name: string, token: string, { data, events }: { data: DataDirectory; events: Events }): string {
  try {
    return data.writeSecret(name, `${token}\n`);
  } catch (cause) {
    const path = join(data.path, name);
    const may_stay = cause instanceof StartError && isShortOfSpace(cause.cause) && existsSync(path);
    if (!may_stay) throw cause;
    events.emit({ event: 'token_not_written', path, cause });
    return path;
  }
}
