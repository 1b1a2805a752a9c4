import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { openBase } from './base.ts';
import { openFeatures } from './composition.ts';
import type { Config } from './config.ts';
import type { BootstrapResult } from './features/bootstrap/bootstrap.ts';
import type { UsedLimit } from './features/operator/operator.ts';
import { type Front, openFront } from './front.ts';
import { type LocalParts, openLocalParts } from './local-parts.ts';
import { type Clock, systemClock } from './platform/clock.ts';
import type { DataDirectory } from './platform/data-directory.ts';
import { checkDatabase } from './platform/database/check.ts';
import type { DatabaseAddress } from './platform/database/database.ts';
import { StartError } from './platform/errors.ts';
import { createLog, type Events } from './platform/events.ts';
import type { Work } from './platform/feature.ts';
import { startLimitingConnections } from './platform/http/ports/connection-limits.ts';
import { type PortHandlers, resolveHost } from './platform/http/ports/listen.ts';
import { createUnsentAnswers } from './platform/http/ports/unsent-answers.ts';
import { type KeptEvents, keepEvents } from './platform/kept-events.ts';
import { forEachAtOnce } from './platform/pacing.ts';
import { isShortOfSpace } from './platform/system/disk-space.ts';
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
export async function openService(configured: Config, options: ServiceOptions = {}): Promise<Service> {
  const { events = keepEvents(createLog(configured.log)), signal } = options;
  // Only addresses can be held, and containers do not know the names of this machine.
  const config = { ...configured, host: await resolveHost(configured.host, signal) };
  await using opened = new AsyncDisposableStack();
  const local_parts = opened.use(await openLocalParts(config, events));
  const not_ready_timer = setTimeout(() => void local_parts.port.answerStarting(), ANSWERS_AFTER_MS);
  const service = await retryUntilAvailable(() => openAll(config, { ...options, events, local_parts }), {
    events,
    signal,
    onUnavailability: (unavailability) => local_parts.port.answerNotReady(unavailability),
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
  const { data, runtime, port, hold_files } = local_parts;
  await using opened = new AsyncDisposableStack();

  const { base, storage } = opened.use(await openBase(config, { ...options, clock, events, data }));
  const { database, watch } = base;
  const composed = opened.use(
    await openFeatures(config, { base, storage, local_parts, kept_events: events, signal: options.signal }),
  );
  const { features, servers, bootstrap, certificates, operator } = composed;
  const machine = createMachineControl(composed, events);
  opened.defer(machine.endLease);
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
      warnings: [async () => storage.warning, storage.space.warn, composed.machines.warnOfDrain, ...operator.warnings],
      readIsolation: () => runtime.isolation,
      epoch: await readEpoch(database.queries),
    }),
  );
  operator.addLimits(() => listLimits(config, front.countWatchers(), servers.countBuildReads?.()));

  const background = new BackgroundWork();
  opened.defer(async () => {
    // The heartbeat of this machine has ended. If a step took too long, other machines would declare this one lost,
    // with its game servers.
    await background.stop(Math.min(STEPS_END_WITHIN_MS, config.machines.lost_after_ms / 2));
    // Game servers that keep running must not get the ports.
    if (!(await machine.hasServers())) local_parts.releasePorts();
  });
  opened.defer(machine.endWaitingServers);
  const handlers: PortHandlers = {
    fetch: (request, server) => servers.answerNodes?.(request, server) ?? front.fetch(request, server),
    websocket: front.websocket,
    endServersOnPort: composed.endServersOnPort,
    answerUnsent: createUnsentAnswers({ ...config, events }),
  };
  await port.setHandlers(handlers);
  let public_ports: AsyncDisposable | undefined;
  opened.defer(async () => {
    await front.drain();
    front.stop();
    watch.release();
    await Promise.all([port.stop(), public_ports?.[Symbol.asyncDispose]()]);
  });
  // Runs before the players leave, which may take long.
  opened.defer(machine.leaveSharedCluster);
  public_ports = await openPublicPorts(config, { certificates, handlers, hold_files, events });
  // After the ports are open, so that work that has piled up does not delay the first requests.
  background.start((signal) => startWork(config, { features, storage, local_parts, events, signal }));

  const everything = opened.move();
  return {
    bootstrap_result: bootstrap,
    administrator_token_file,
    createHubLink: async () => (await composed.hub.createLink(bootstrap.administrator_token)).url,
    stopTakingServers: machine.stopTakingServers,
    stopServers: machine.stopServers,
    [Symbol.asyncDispose]: () => everything.disposeAsync(),
  };
}

type Composed = Awaited<ReturnType<typeof openFeatures>>;

/** Creates what a stop of the service does with this machine and its game servers. */
function createMachineControl({ servers, machines, machine }: Composed, events: Events) {
  let has_stopped_taking = false;
  const hasServers = () => servers.isAnyOn(machine.node_id).catch(() => true);
  return {
    /** Whether game servers run on this machine, as far as the database knows. */
    hasServers,
    async stopTakingServers(): Promise<void> {
      has_stopped_taking = true;
      await machines.stopTakingServers();
    },
    async stopServers(): Promise<void> {
      const cluster_id = machines.clusterId();
      const has_cluster_alone = cluster_id !== undefined && !(await machines.isClusterShared().catch(() => true));
      const node_ids = [machine.node_id, ...(has_cluster_alone ? [cluster_id] : [])];
      await forEachAtOnce(node_ids, node_ids.length, (node_id) => servers.stopAllOf({ ...machine, node_id }));
    },
    /** Lets another process use the cluster. If there is none, this one keeps the pods until its background work ends. */
    async leaveSharedCluster(): Promise<void> {
      await servers
        .leaveSharedCluster()
        .catch((cause: unknown) => events.emit({ event: 'lease_failed', step: 'release', cause }));
    },
    /** Ends the servers of lobbies that were created since the machine has stopped taking servers. */
    async endWaitingServers(): Promise<void> {
      if (!has_stopped_taking) return;
      await servers
        .endWaitingServers(machine.datacenter_id)
        .catch((cause: unknown) => events.emit({ event: 'servers_stop_failed', cause }));
    },
    /** If this fails, others declare the machine lost after `lost_after_ms` instead of `rest_ms`. */
    async endLease(): Promise<void> {
      await machines
        .stop({ has_servers: await hasServers() })
        .catch((cause: unknown) => events.emit({ event: 'lease_failed', step: 'stop', cause }));
    },
  };
}

/** Returns the limits of what a process serves, and how much of each is used. */
function listLimits(
  { watch, sockets }: Config,
  used: ReturnType<Front['countWatchers']>,
  build_reads: { used: number; max: number } | undefined,
): UsedLimit[] {
  return [
    { name: 'watchers', used: used.watchers, max: watch.watchers_max },
    { name: 'polls', used: used.polls },
    { name: 'sockets', used: used.sockets, max: sockets.sockets_max },
    ...(build_reads ? [{ name: 'build_reads' as const, ...build_reads }] : []),
  ];
}

/** Work that goes on until it is stopped. */
class BackgroundWork {
  readonly #stopping = new AbortController();
  #work: Work[] = [];

  start(startAll: (signal: AbortSignal) => Work[]): void {
    this.#work = startAll(this.#stopping.signal);
  }

  /** Stops the work. Waits for the steps in progress, but no longer than `within_ms`. */
  async stop(within_ms: number): Promise<void> {
    this.#stopping.abort();
    const stopped = Promise.all(this.#work.map((one) => one.stopped));
    await Promise.race([stopped, pause(within_ms, undefined, { ref: false })]);
  }
}

interface WorkParts {
  features: Composed['features'];
  storage: Awaited<ReturnType<typeof openBase>>['storage'];
  local_parts: LocalParts;
  events: Events;
  signal: AbortSignal;
}

/** Starts the background work of all features and of the parts below them. */
function startWork(config: Config, { features, storage, local_parts, events, signal }: WorkParts): Work[] {
  const { host, port, tls, kubernetes, trusted_proxies, connections_per_address_max } = config;
  const { ip_database } = local_parts;
  const ports = [port, tls.https_port, tls.http_port, kubernetes?.port].filter((one) => one !== undefined);
  return [
    ...features.flatMap((feature) => feature.startWork?.(signal) ?? []),
    storage.space.startWatching(signal),
    startLimitingConnections({ host, ports, trusted_proxies, connections_per_address_max, events, signal }),
    ...(ip_database ? [ip_database.startReading({ signal, events })] : []),
  ];
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
