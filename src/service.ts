import { sql } from 'drizzle-orm';
import manifest from '../package.json' with { type: 'json' };
import type { Config } from './config.ts';
import { createBilling } from './features/billing/billing.ts';
import { billingRoutes } from './features/billing/routes.ts';
import { type Beginnings, bootstrap } from './features/bootstrap/bootstrap.ts';
import { bootstrapRoutes } from './features/bootstrap/routes.ts';
import { createBuilds } from './features/builds/builds.ts';
import { buildRoutes } from './features/builds/routes.ts';
import { createCaptcha } from './features/captcha/captcha.ts';
import { captchaRoutes } from './features/captcha/routes.ts';
import { createCdn } from './features/cdn/cdn.ts';
import { createHosts } from './features/cdn/hosts.ts';
import { createDatacenters } from './features/datacenters/datacenters.ts';
import { datacenterRoutes } from './features/datacenters/routes.ts';
import { createDevices } from './features/devices/devices.ts';
import { deviceRoutes } from './features/devices/routes.ts';
import { EXAMPLES, KEY_EXAMPLES } from './features/examples.ts';
import { createExports } from './features/exports/exports.ts';
import { exportRoutes } from './features/exports/routes.ts';
import { createGames } from './features/games/games.ts';
import { gameRoutes } from './features/games/routes.ts';
import { createGroups, type Groups } from './features/groups/groups.ts';
import { groupMemberRoutes } from './features/groups/members-routes.ts';
import { groupRoutes } from './features/groups/routes.ts';
import { toGroupHandle } from './features/groups/wire.ts';
import { createIdentities } from './features/identities/identities.ts';
import { identityRoutes } from './features/identities/routes.ts';
import { sessionRoutes } from './features/identities/session-routes.ts';
import { lobbyCloudRoutes } from './features/lobbies/cloud-routes.ts';
import { lobbyHostRoutes } from './features/lobbies/host-routes.ts';
import { createLobbies } from './features/lobbies/lobbies.ts';
import { queueRoutes } from './features/lobbies/queue-routes.ts';
import { startReconciling as startReconcilingLobbies } from './features/lobbies/reconcile.ts';
import { lobbyRoutes } from './features/lobbies/routes.ts';
import { createMedia } from './features/media/media.ts';
import { mediaRoutes } from './features/media/routes.ts';
import { createNamespaces } from './features/namespaces/namespaces.ts';
import { namespaceRoutes } from './features/namespaces/routes.ts';
import { namespaceSettingsRoutes } from './features/namespaces/settings-routes.ts';
import { createLogs } from './features/servers/logs.ts';
import { startMetering } from './features/servers/metering.ts';
import { startReconciling as startReconcilingServers } from './features/servers/reconcile.ts';
import { serverRoutes } from './features/servers/routes.ts';
import { createProcessRuntime } from './features/servers/runtimes/process.ts';
import { createServers } from './features/servers/servers.ts';
import { siteRoutes } from './features/sites/routes.ts';
import { createSites } from './features/sites/sites.ts';
import { uploadRoutes } from './features/uploads/routes.ts';
import { createUploads } from './features/uploads/uploads.ts';
import { createVerification } from './features/verification/verification.ts';
import { versionRoutes } from './features/versions/routes.ts';
import { createVersions } from './features/versions/versions.ts';
import { readAddressClasses } from './platform/address-classes.ts';
import { type Clock, systemClock } from './platform/clock.ts';
import { type DataDirectory, openDataDirectory } from './platform/data-directory.ts';
import { connectDatabase, connectEmbedded } from './platform/database/connect.ts';
import type { Database, DatabaseAddress } from './platform/database/database.ts';
import { migrateDatabase } from './platform/database/migrate.ts';
import { createLog, type Events } from './platform/events.ts';
import { createAddresses } from './platform/http/addresses.ts';
import { createApp } from './platform/http/app.ts';
import { createCors } from './platform/http/cors.ts';
import { createCounting } from './platform/http/counting.ts';
import { documentRoutes } from './platform/http/documents.ts';
import { healthRoutes } from './platform/http/health.ts';
import { listen } from './platform/http/listen.ts';
import { createRays, rayRoutes } from './platform/http/rays.ts';
import { NO_IP_DATABASE, openIpDatabase } from './platform/ip-database.ts';
import { openLimits } from './platform/limits/limits.ts';
import { createDiskObjects } from './platform/objects/disk.ts';
import { createSignedLinks } from './platform/objects/links.ts';
import { createPresigner } from './platform/objects/presign.ts';
import { openS3Objects } from './platform/objects/s3.ts';
import { createOutbound, type Lane } from './platform/outbound/outbound.ts';
import { createSockets } from './platform/socket/sockets.ts';
import { loadKey } from './platform/tokens/keys.ts';
import { createTokens } from './platform/tokens/tokens.ts';
import { openFeed } from './platform/watch/feed.ts';
import { readEpoch } from './platform/watch/versions.ts';
import { openWatch } from './platform/watch/watch.ts';

/** How long requests that are under way may take when the service stops. */
const DRAIN_MS = 10_000;

export const VERSION = manifest.version;

export interface Service extends AsyncDisposable {
  beginnings: Beginnings;
  /** Where the administrator's token can be read, by us only. */
  administrator_token_file: string;
  /** Ends the game servers of this machine; they end by themselves within their time, or are killed. */
  stopServers(): Promise<void>;
}

interface ServiceOptions {
  /** Tests move it. */
  clock?: Clock;
  events?: Events;
  /** A database of the tests' own server, instead of the one that the configuration says. */
  database_address?: DatabaseAddress;
}

/**
 * Opens everything in order and serves. Disposed of, it closes in reverse: it takes no new requests, answers those who
 * wait, ends the background work and then the database. What fails half-way closes what was opened. Throws StartError.
 */
export async function openService(config: Config, options: ServiceOptions = {}): Promise<Service> {
  const clock = options.clock ?? systemClock;
  const events = options.events ?? createLog(config.log);
  const { public_url, local_url } = config;
  await using opened = new AsyncDisposableStack();

  const { ip_database_file } = config;
  const ip_database = ip_database_file === undefined ? undefined : await openIpDatabase(ip_database_file);
  const address_classes = await readAddressClasses(config.address_classes_file);
  const data = opened.use(openDataDirectory(config.data_directory));
  const database = opened.use(await openDatabase(config, data, events, options.database_address));
  await migrateDatabase(database);
  const { queries } = database;
  const feed = opened.use(await openFeed(database, events));
  const watch = await openWatch(queries, feed, config);
  const tokens = await createTokens(await loadKey(queries, clock, 'token'), clock);
  const upload_key = await loadKey(queries, clock, 'upload');
  const presigner = createPresigner(upload_key, clock, public_url);
  const links = createSignedLinks(upload_key, clock, public_url);
  const objects = config.s3 ? await openS3Objects(config.s3) : createDiskObjects(data.folder('objects'));
  const runtime = await createProcessRuntime({
    directory: data.folder('servers'),
    programs_directory: data.folder('programs'),
  });

  const base = { database, clock, events, feed, watch, tokens };
  const identities = createIdentities({ ...base, groupsShowing: (tx, identity_id) => groups.showing(tx, identity_id) });
  const groups: Groups = createGroups({ ...base, identities, public_url });
  const datacenters = createDatacenters(base);
  const uploads = createUploads({ ...base, objects, presigner });
  const media = createMedia({ ...base, uploads });
  const builds = createBuilds({ ...base, uploads, directory: data.folder('builds'), kinds: runtime.kinds });
  const sites = createSites({ ...base, uploads });
  const versions = createVersions({ ...base, ...config, builds, sites, datacenters });
  const namespaces = createNamespaces({ ...base, ...config, versions });
  const games = createGames({ ...base, groups, namespaces, versions, datacenters, public_url });
  const hosts = createHosts({ ...base, ...config, games, namespaces });
  const cdn = createCdn({ hosts, namespaces, versions, sites, uploads });
  const devices = createDevices({ ...base, games, public_url });
  const logs = createLogs(base);
  const servers = createServers({ ...base, builds, datacenters, logs });
  const { datacenter_id } = await datacenters.register(config.datacenter);
  const beginnings = await bootstrap({
    ...base,
    identities,
    groups,
    games,
    namespaces,
    versions,
    uploads,
    builds,
    with_demo: config.demo,
  });
  const administrator_token_file = data.writeSecret('administrator-token', `${beginnings.administrator_token}\n`);

  const working = new AbortController();
  const node = {
    node_id: data.node_id,
    datacenter_id,
    api_url: local_url,
    is_root: process.getuid?.() === 0,
    ...config,
  };
  const work: { stopped: Promise<void> }[] = [
    startReconcilingServers({ ...base, builds, runtime, logs, node }, working.signal),
    startMetering({ ...base, node }, working.signal),
    uploads.startCleaning(working.signal),
    identities.startForgetting(working.signal),
  ];
  const lobby_work = startReconcilingLobbies(
    { ...base, ...config, namespaces, versions, datacenters, servers },
    working.signal,
  );
  opened.defer(async () => {
    working.abort();
    await Promise.all([...work, lobby_work].map(({ stopped }) => stopped));
  });
  const onRest = (lane: Lane) => events.emit({ event: 'outbound_target_rests', ...lane });
  const outbound = createOutbound({ allowed_private: config.outbound_allow, onRest });
  const key = await loadKey(queries, clock, 'captcha');
  // Its own lanes: games whose verifying servers answer nobody take no captcha its turn.
  const asking = createOutbound({ allowed_private: [], onRest });
  const captcha = createCaptcha({ ...base, ...config, namespaces, versions, outbound: asking, key });
  work.push(captcha.startForgetting(working.signal));
  const verification = createVerification({ ...base, ...config, outbound, ip_database: ip_database ?? NO_IP_DATABASE });
  const lobbies = createLobbies({
    ...base,
    ...config,
    captcha,
    namespaces,
    versions,
    datacenters,
    servers,
    verification,
    address_classes,
    own_region: config.datacenter.slug,
    onLeft: lobby_work.wake,
  });
  work.push(lobbies.receipts.startKeeping(working.signal), lobbies.queue.startKeeping(working.signal));
  if (ip_database) work.push(ip_database.startReading({ signal: working.signal, events }));

  const exports = createExports({ lobbies, servers, links });

  const stopping = new AbortController();
  const describe = () => ({ app, routes });
  const rays = createRays();
  const routes = [
    ...lobbyRoutes(lobbies),
    ...lobbyHostRoutes(lobbies),
    ...queueRoutes(lobbies),
    ...lobbyCloudRoutes(lobbies, servers),
    ...captchaRoutes(captcha),
    ...exportRoutes(exports),
    ...billingRoutes(createBilling({ ...base, groups, games, servers })),
    ...serverRoutes(servers),
    ...buildRoutes(builds),
    ...siteRoutes(sites),
    ...uploadRoutes(uploads, games.tenants),
    ...gameRoutes(games),
    ...mediaRoutes({ media, games, groups, identities, public_url }),
    ...namespaceRoutes(namespaces, config),
    ...namespaceSettingsRoutes(namespaces),
    ...versionRoutes(versions),
    ...datacenterRoutes(datacenters),
    ...groupRoutes(groups, config),
    ...groupMemberRoutes(groups, config),
    ...sessionRoutes(identities, config),
    ...identityRoutes({
      identities,
      public_url,
      groupsOf: async (identity_id) =>
        (await groups.listOf(identity_id)).map((group) => toGroupHandle(group, public_url)),
      gameOf: async (namespace_id) => (await namespaces.find(namespace_id))?.game_id,
    }),
    ...bootstrapRoutes(namespaces, () => beginnings.demo, { ...config, version: VERSION }),
    ...deviceRoutes(devices),
    ...documentRoutes({ describe, version: VERSION, examples: { values: EXAMPLES, keys: KEY_EXAMPLES }, public_url }),
    ...rayRoutes(rays),
    ...healthRoutes([
      () => checkDatabase(database),
      async () => (stopping.signal.aborted ? 'it is stopping' : undefined),
    ]),
  ];
  const addresses = createAddresses(config.trusted_proxies);
  const limits = opened.use(await openLimits({ ...base, ...config.limits, epoch: await readEpoch(queries) }));
  const counting = createCounting({ ...base, addresses, limits });
  const admission = { ...base, ...config, routes, sites: cdn, tenants: games.tenants, addresses, limits, counting };
  const sockets = createSockets({ ...admission, cors: createCors([public_url, local_url]) });
  const app = createApp({ ...admission, sockets, rays, stopping: stopping.signal });
  listen(app, config, sockets.handlers);
  opened.defer(async () => {
    stopping.abort();
    sockets.stop();
    watch.release();
    // Connections that are idle are closed at once, those at work when they are done or out of time.
    await Promise.race([app.server?.stop(false), Bun.sleep(DRAIN_MS)]);
    await app.server?.stop(true);
  });

  const everything = opened.move();
  return {
    beginnings,
    administrator_token_file,
    stopServers: () => servers.stopAllOf(node.node_id),
    [Symbol.asyncDispose]: () => everything.disposeAsync(),
  };
}

/** The database that the configuration names, or the embedded one. */
export async function openDatabase(
  { database_url, database_pool }: Config,
  data: DataDirectory,
  events: Events,
  address: DatabaseAddress | undefined = database_url === undefined ? undefined : { url: database_url },
): Promise<Database> {
  if (address) return await connectDatabase(address, database_pool);
  return await connectEmbedded({ directory: data.folder('postgres'), is_durable: true, events }, database_pool);
}

async function checkDatabase({ queries }: Database): Promise<string | undefined> {
  try {
    await queries.execute(sql`select 1`);
    return undefined;
  } catch {
    return 'the database does not answer';
  }
}
