import { existsSync } from 'node:fs';
import type { Config } from './config.ts';
import { freePortOfServers } from './features/servers/eviction.ts';
import { combineRuntimes, withoutStarts } from './features/servers/runtimes/combined-runtime.ts';
import { openContainers } from './features/servers/runtimes/container/containers.ts';
import { openEngine } from './features/servers/runtimes/engine/engine.ts';
import { type Cluster, openKubernetes } from './features/servers/runtimes/kubernetes/kubernetes.ts';
import { openProcessRuntime } from './features/servers/runtimes/process/process-runtime.ts';
import type { Runtime } from './features/servers/runtimes/runtime.ts';
import { type AddressClasses, readAddressClasses } from './platform/address-classes.ts';
import { type DataDirectory, openDataDirectory } from './platform/data-directory.ts';
import type { Events } from './platform/events.ts';
import { toFinding } from './platform/findings.ts';
import { createCors } from './platform/http/cors.ts';
import { createPort, type PortHandlers } from './platform/http/listen.ts';
import { createNotReadyAnswers } from './platform/http/not-ready.ts';
import { releaseHold } from './platform/http/port-hold.ts';
import { openIpDatabase } from './platform/ip-database.ts';
import type { Unavailability } from './platform/unavailability.ts';

const STARTING: Unavailability = {
  code: 'DATABASE_UNAVAILABLE',
  finding: toFinding('SERVICE_STARTING', 'it is starting'),
};

/** The parts of the service that need no database: those of this machine. */
export interface LocalParts extends AsyncDisposable {
  data: DataDirectory;
  /** The runtime of this machine. With a cluster it starts nothing more. */
  runtime: Runtime;
  /** The cluster that runs servers instead of this machine; undefined if none is configured. */
  cluster: Cluster | undefined;
  /** Undefined if none is configured. */
  ip_database: Awaited<ReturnType<typeof openIpDatabase>> | undefined;
  address_classes: AddressClasses;
  /** Starts to answer on the service's port. Throws StartError if it cannot listen there. */
  setHandlers(handlers: PortHandlers): Promise<void>;
  /** Answers all requests with the reason why the service is not ready, until `setHandlers` is called. */
  answerNotReady(unavailability: Unavailability): Promise<void>;
  /** Answers all requests with the reason that the service is starting, if the port is free and not open yet. */
  answerStarting(): Promise<void>;
  /** Accepts no more connections, and ends the open ones within a time limit. */
  stopAnswering(): Promise<void>;
  /** The files that name the holders of the ports for https and http; undefined if game servers run as our user. */
  hold_files: { https: string; http: string } | undefined;
  /** Releases the ports, so that other programs can use them while the service is stopped. */
  releasePorts(): void;
}

/** Opens the parts that need no database. Throws StartError. */
export async function openLocalParts(config: Config, events: Events): Promise<LocalParts> {
  await using opened = new AsyncDisposableStack();
  const { ip_database_file, public_url, local_url } = config;
  const ip_database = ip_database_file === undefined ? undefined : await openIpDatabase(ip_database_file);
  const address_classes = await readAddressClasses(config.address_classes_file);
  const data = opened.use(openDataDirectory(config.data_directory));
  const is_root = process.getuid?.() === 0;
  const processes = await openProcessRuntime({
    directory: data.folder('servers'),
    data_directory: data.path,
    programs_directory: data.folder('programs'),
    host: config.server_host,
    has_separate_users: is_root,
    isolation: config.isolation,
  });
  const containers = openContainers({
    ...config.containers,
    directory: data.folder('containers'),
    host: config.server_host,
    api_url: local_url,
    events,
  });
  const engine = await openEngine({
    ...config.containers,
    isolation: config.isolation,
    is_root,
    directory: data.folder('engine'),
    host: config.server_host,
    api_url: local_url,
    machine_id: data.node_id,
    events,
  });
  // A configured engine starts all containers. Those that ran before it was configured continue.
  const of_machine = [processes, ...(engine ? [engine] : []), containers];
  const cluster =
    config.kubernetes &&
    openKubernetes({
      settings: config.kubernetes,
      directory: data.folder('kubernetes'),
      disk_max: config.servers.disk_max,
      api_url: local_url,
      events,
    });
  const runtime = combineRuntimes(cluster ? of_machine.flatMap(withoutStarts) : of_machine, events);
  const port = createPort({ ...config, hold_file: is_root ? `${data.path}/port-hold` : undefined });
  const hold_files = is_root
    ? { https: `${data.path}/https-port-hold`, http: `${data.path}/http-port-hold` }
    : undefined;
  // A port whose setting was removed since.
  if (hold_files && config.tls.https_port === undefined) releaseIfHeld(hold_files.https);
  if (hold_files && config.tls.http_port === undefined) releaseIfHeld(hold_files.http);
  const releasePorts = () => {
    port.release();
    for (const file of Object.values(hold_files ?? {})) releaseIfHeld(file);
  };

  let opening: Promise<void> | undefined;
  /** Runs calls one at a time, because the first one that succeeds opens the port. */
  function setInTurn(handlers: PortHandlers): Promise<void> {
    const before = opening?.catch(() => {}) ?? Promise.resolve();
    opening = before.then(() => port.setHandlers(handlers));
    return opening;
  }
  let unavailability: Unavailability | undefined;
  async function answerNotReady(reason: Unavailability): Promise<void> {
    const is_first = unavailability === undefined;
    unavailability = reason;
    await (is_first ? setInTurn(not_ready) : opening);
  }
  const not_ready: PortHandlers = {
    fetch: createNotReadyAnswers({
      cors: createCors([public_url, local_url]),
      public_url,
      unavailability: () => unavailability ?? STARTING,
    }),
    freePort: (taken) => freePortOfServers({ events, runtime }, taken),
  };
  opened.defer(async () => {
    await opening?.catch(() => {});
    await port.stop();
    // Game servers that keep running must not get the ports. Without a database only the runtime knows whether there are any.
    if (unavailability !== undefined && (await runtime.list()).length === 0) releasePorts();
  });
  const everything = opened.move();
  return {
    data,
    runtime,
    cluster,
    ip_database,
    address_classes,
    async setHandlers(handlers) {
      await setInTurn(handlers);
      unavailability = undefined;
    },
    answerNotReady,
    async answerStarting() {
      if (opening !== undefined) return;
      unavailability = STARTING;
      try {
        // Ends no game server that has the port, because the reason could not be recorded yet.
        await setInTurn({ ...not_ready, freePort: async () => 0 });
      } catch {
        unavailability = undefined;
      }
    },
    stopAnswering: port.stop,
    hold_files,
    releasePorts,
    [Symbol.asyncDispose]: () => everything.disposeAsync(),
  };
}

/** Releases a port. Skips the search through all processes if nothing was held. */
function releaseIfHeld(file: string): void {
  if (existsSync(file)) releaseHold(file);
}
