import { existsSync } from 'node:fs';
import type { Config } from './config.ts';
import { evictFromPort } from './features/servers/eviction.ts';
import { combineRuntimes, withoutStarts } from './features/servers/runtimes/combined-runtime.ts';
import { openContainers } from './features/servers/runtimes/container/containers.ts';
import { openEngine } from './features/servers/runtimes/engine/engine.ts';
import { type Cluster, openKubernetes } from './features/servers/runtimes/kubernetes/cluster.ts';
import { openProcessRuntime } from './features/servers/runtimes/process/process-runtime.ts';
import type { Runtime } from './features/servers/runtimes/runtime.ts';
import { type AddressClasses, readAddressClasses } from './platform/address-classes.ts';
import { type DataDirectory, openDataDirectory } from './platform/data-directory.ts';
import type { Events } from './platform/events.ts';
import { releaseHold } from './platform/http/ports/port-hold.ts';
import { ServicePort } from './platform/http/ports/service-port.ts';
import { createUnsentAnswers } from './platform/http/ports/unsent-answers.ts';
import { openIpDatabase } from './platform/ip-database.ts';
import { isAnyAddress, parseAddress, toUrlHost } from './platform/networks.ts';

/** Whether game servers run as users of their own. */
const IS_ROOT = process.getuid?.() === 0;

/** The parts of the service that need no database: those of this machine. */
export interface LocalParts extends AsyncDisposable {
  data: DataDirectory;
  /** The runtime of this machine. With a cluster it starts nothing more. */
  runtime: Runtime;
  /** The cluster that runs servers instead of this machine; undefined if none is configured. */
  cluster: Cluster | undefined;
  /** The API as game servers that are processes of this machine reach it. */
  api_url: string;
  /** Undefined if none is configured. */
  ip_database: Awaited<ReturnType<typeof openIpDatabase>> | undefined;
  address_classes: AddressClasses;
  /** The service's port, which does not listen yet. */
  port: ServicePort;
  /** The files that name the holders of the ports for https and http; undefined if game servers run as our user. */
  hold_files: { https: string; http: string } | undefined;
  /** Releases the ports, so that other programs can use them while the service is stopped. */
  releasePorts(): void;
}

/** Opens the parts that need no database. Throws StartError. */
export async function openLocalParts(config: Config, events: Events): Promise<LocalParts> {
  await using opened = new AsyncDisposableStack();
  const { ip_database_file } = config;
  const ip_database = ip_database_file === undefined ? undefined : await openIpDatabase(ip_database_file);
  const address_classes = await readAddressClasses(config.address_classes_file);
  const data = opened.use(openDataDirectory(config.data_directory));
  const api_url = apiUrlOf(config);
  const { runtime, cluster } = await openRuntimes(config, { data, api_url, events });
  const port = new ServicePort({
    ...config,
    hold_file: IS_ROOT ? `${data.path}/port-hold` : undefined,
    endServersOnPort: (taken) => evictFromPort({ events, runtime }, taken),
    answerUnsent: createUnsentAnswers({ ...config, events }),
  });
  const hold_files = IS_ROOT
    ? { https: `${data.path}/https-port-hold`, http: `${data.path}/http-port-hold` }
    : undefined;
  // A port whose setting was removed since.
  if (hold_files && config.tls.https_port === undefined) releaseIfHeld(hold_files.https);
  if (hold_files && config.tls.http_port === undefined) releaseIfHeld(hold_files.http);
  const releasePorts = () => {
    port.release();
    for (const file of Object.values(hold_files ?? {})) releaseIfHeld(file);
  };
  opened.defer(async () => {
    await port.stop();
    // Game servers that keep running must not get the ports. Without a database only the runtime knows whether there are any.
    if (port.answers_not_ready && (await runtime.list()).length === 0) releasePorts();
  });
  const everything = opened.move();
  return {
    data,
    runtime,
    cluster,
    api_url,
    ip_database,
    address_classes,
    port,
    hold_files,
    releasePorts,
    [Symbol.asyncDispose]: () => everything.disposeAsync(),
  };
}

/** Returns the API's URL for game servers: with the address instead of a name that only this machine may know. */
function apiUrlOf({ host, port, local_url }: Config): string {
  const is_one_address = parseAddress(host) !== undefined && !isAnyAddress(host);
  return is_one_address ? `http://${toUrlHost(host)}:${port}` : local_url;
}

interface RuntimeParts extends Pick<LocalParts, 'data' | 'api_url'> {
  events: Events;
}

/** Opens what runs game servers: as processes and containers of this machine, and in a cluster if one is configured. */
async function openRuntimes(config: Config, { data, api_url, events }: RuntimeParts) {
  const { server_host: host, isolation, servers, kubernetes } = config;
  const shared = { host, api_url, events };
  const processes = await openProcessRuntime({
    host,
    directory: data.folder('servers'),
    data_directory: data.path,
    programs_directory: data.folder('programs'),
    has_separate_users: IS_ROOT,
    isolation,
  });
  const containers = openContainers({ ...config.containers, ...shared, directory: data.folder('containers') });
  const engine = await openEngine({
    ...config.containers,
    ...shared,
    directory: data.folder('engine'),
    node_id: data.node_id,
    is_root: IS_ROOT,
    isolation,
  });
  // A configured engine starts all containers. Those that ran before it was configured continue.
  const of_machine = [processes, ...(engine ? [engine] : []), containers];
  const { disk_max } = servers;
  const directory = data.folder('kubernetes');
  const cluster = kubernetes && openKubernetes({ settings: kubernetes, directory, disk_max, api_url, events });
  // With a cluster, this machine starts nothing more, but what it started before continues.
  const runtime = combineRuntimes(cluster ? of_machine.flatMap(withoutStarts) : of_machine, events);
  return { runtime, cluster };
}

/** Releases a port. Skips the search through all processes if nothing was held. */
function releaseIfHeld(file: string): void {
  if (existsSync(file)) releaseHold(file);
}
