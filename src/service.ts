import { hostname } from 'node:os';
import type { Config } from './config.ts';
import { createBilling } from './features/billing/billing.ts';
import { billingRoutes } from './features/billing/routes.ts';
import { type BootstrapResult, bootstrap } from './features/bootstrap/bootstrap.ts';
import { bootstrapRoutes } from './features/bootstrap/routes.ts';
import { createBuilds } from './features/builds/builds.ts';
import { buildRoutes } from './features/builds/routes.ts';
import { createCaptcha } from './features/captcha/captcha.ts';
import { captchaRoutes } from './features/captcha/routes.ts';
import { openCdn } from './features/cdn/cdn.ts';
import { createDatacenters } from './features/datacenters/datacenters.ts';
import { datacenterRoutes } from './features/datacenters/routes.ts';
import { createDevices } from './features/devices/devices.ts';
import { deviceRoutes } from './features/devices/routes.ts';
import { EXAMPLES, KEY_EXAMPLES } from './features/examples.ts';
import { createExports } from './features/exports/exports.ts';
import { exportRoutes } from './features/exports/routes.ts';
import { createGames, type Games } from './features/games/games.ts';
import { startPlayerCounts } from './features/games/player-counts.ts';
import { gameRoutes } from './features/games/routes.ts';
import { createGroups, type Groups } from './features/groups/groups.ts';
import { groupMemberRoutes } from './features/groups/members-routes.ts';
import { groupRoutes } from './features/groups/routes.ts';
import { toGroupHandle } from './features/groups/wire.ts';
import { createIdentities } from './features/identities/identities.ts';
import { identityRoutes } from './features/identities/routes.ts';
import { sessionRoutes } from './features/identities/session-routes.ts';
import { lobbyCloudRoutes } from './features/lobbies/cloud-routes.ts';
import { lobbyGameServerRoutes } from './features/lobbies/game-server-routes.ts';
import { createLobbies, type Lobbies } from './features/lobbies/lobbies.ts';
import { queueRoutes } from './features/lobbies/queue-routes.ts';
import { startReconciling as startReconcilingLobbies } from './features/lobbies/reconcile.ts';
import { lobbyRoutes } from './features/lobbies/routes.ts';
import { createMedia } from './features/media/media.ts';
import { mediaRoutes } from './features/media/routes.ts';
import { createNamespaces } from './features/namespaces/namespaces.ts';
import { namespaceRoutes } from './features/namespaces/routes.ts';
import { namespaceSettingsRoutes } from './features/namespaces/settings-routes.ts';
import { startRetention } from './features/retention/retention.ts';
import { evictFromPort } from './features/servers/eviction.ts';
import { createLogs } from './features/servers/logs.ts';
import { startMetering } from './features/servers/metering.ts';
import { startReconciling as startReconcilingServers } from './features/servers/reconcile.ts';
import { serverRoutes } from './features/servers/routes.ts';
import { createServers } from './features/servers/servers.ts';
import { siteRoutes } from './features/sites/routes.ts';
import { createSites } from './features/sites/sites.ts';
import { uploadRoutes } from './features/uploads/routes.ts';
import { createUploads, type Uploads } from './features/uploads/uploads.ts';
import { createVerification } from './features/verification/verification.ts';
import { versionRoutes } from './features/versions/routes.ts';
import { createVersions } from './features/versions/versions.ts';
import { type Machine, openMachine } from './machine.ts';
import { type Clock, systemClock } from './platform/clock.ts';
import { checkDatabase } from './platform/database/check.ts';
import { openConfiguredDatabase } from './platform/database/connect.ts';
import type { DatabaseAddress, Tx } from './platform/database/database.ts';
import { migrateDatabase } from './platform/database/migrate.ts';
import { whenDatabaseAnswers } from './platform/database/waiting.ts';
import { createDiskSpace, UNLIMITED_SPACE } from './platform/disk-space.ts';
import { createLog, type Events } from './platform/events.ts';
import { createAddresses } from './platform/http/addresses.ts';
import { createApp } from './platform/http/app.ts';
import { startLimitingConnections } from './platform/http/connection-limits.ts';
import { createCors } from './platform/http/cors.ts';
import { createCounting } from './platform/http/counting.ts';
import { documentRoutes } from './platform/http/documents.ts';
import { healthRoutes } from './platform/http/health.ts';
import { answerBy } from './platform/http/listeners.ts';
import { createRays, rayRoutes } from './platform/http/rays.ts';
import { createTransfers } from './platform/http/transfers.ts';
import { NO_IP_DATABASE } from './platform/ip-database.ts';
import { openLimits } from './platform/limits/limits.ts';
import { startForgetting } from './platform/loop.ts';
import { createDiskObjects } from './platform/objects/disk.ts';
import { createSignedLinks } from './platform/objects/links.ts';
import { createPresigner } from './platform/objects/presign.ts';
import { openS3Objects } from './platform/objects/s3.ts';
import { placeOfBucket } from './platform/objects/s3-settings.ts';
import { compareStorage } from './platform/objects/storage-mark.ts';
import { createOutbound, type Destination } from './platform/outbound/outbound.ts';
import { createSockets } from './platform/socket/sockets.ts';
import { loadKey } from './platform/tokens/keys.ts';
import { createTokens } from './platform/tokens/tokens.ts';
import { RELEASE, VERSION } from './platform/version.ts';
import { openFeed } from './platform/watch/feed.ts';
import { readEpoch } from './platform/watch/versions.ts';
import { openWatch } from './platform/watch/watch.ts';

export interface Service extends AsyncDisposable {
  bootstrap_result: BootstrapResult;
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
  /** Tests recheck seldom, so that a change whose notification was lost is not found. */
  feed_recheck_ms?: number;
  /** Gives up a start that waits for the database; the signal's reason is thrown. */
  signal?: AbortSignal;
}

/**
 * Opens everything in order and serves. While the database is away it answers that it is not ready, and opens again what
 * needs the database. Disposed of, it closes in reverse: it takes no new requests, answers those who wait, ends the
 * background work and then the database. What fails half-way closes what was opened. Throws StartError.
 */
export async function openService(config: Config, options: ServiceOptions = {}): Promise<Service> {
  const { events = createLog(config.log), signal } = options;
  await using opened = new AsyncDisposableStack();
  const machine = opened.use(await openMachine(config, events));
  const service = await whenDatabaseAnswers(() => openAll(config, { ...options, events, machine }), {
    events,
    signal,
    onAway: machine.answerWaiting,
  });
  opened.use(service);
  const everything = opened.move();
  return { ...service, [Symbol.asyncDispose]: () => everything.disposeAsync() };
}

async function openAll(
  config: Config,
  { events, machine, ...options }: ServiceOptions & { events: Events; machine: Machine },
): Promise<Service> {
  const { clock = systemClock, database_address: address } = options;
  const { data, runtime, ip_database, address_classes } = machine;
  const { public_url, local_url } = config;
  await using opened = new AsyncDisposableStack();

  const database = opened.use(await openConfiguredDatabase(config, data, events, { address, signal: options.signal }));
  await migrateDatabase(database);
  const { queries } = database;
  const space = createDiskSpace({ directory: data.path, reserve_bytes: config.disk_reserve_bytes, events });
  const feed = opened.use(await openFeed(database, events, options.feed_recheck_ms));
  const watch = await openWatch(queries, feed, config);
  const tokens = await createTokens(await loadKey(queries, clock, 'token'), clock);
  const upload_key = await loadKey(queries, clock, 'upload');
  const presigner = createPresigner(upload_key, clock, public_url);
  const links = createSignedLinks(upload_key, clock, public_url);
  const objects = config.s3 ? await openS3Objects(config.s3) : createDiskObjects(data.folder('objects'), space);
  const place = config.s3 ? placeOfBucket(config.s3) : `${data.folder('objects')} on ${hostname()}`;
  const storage_warning = await compareStorage({ queries, objects, place, events });

  const base = { database, clock, events, feed, watch, tokens };
  const identities = createIdentities({
    ...base,
    refresh_key: await loadKey(queries, clock, 'refresh'),
    groupsListing: (tx, identity_id) => groups.groupsListing(tx, identity_id),
    listedInGroups: (tx, identity_ids) => groups.listed(tx, identity_ids),
    discardPicture: (tx, upload_id) => uploads.discard(tx, upload_id),
    leaveGroups: (identity_id) => groups.leaveAll(identity_id),
  });
  const revokeTokensOf = (tx: Tx, group_id: string) => games.revokeTokensOf(tx, group_id);
  const groups: Groups = createGroups({ ...base, identities, public_url, revokeTokensOf });
  const datacenters = createDatacenters(base);
  const uploads: Uploads = createUploads({ ...base, objects, presigner });
  const media = createMedia({ ...base, ...config, uploads, identities });
  const builds = createBuilds({ ...base, uploads, directory: data.folder('builds'), space, kinds: runtime.kinds });
  const sites = createSites({ ...base, uploads });
  const versions = createVersions({ ...base, ...config, builds, sites, datacenters });
  const namespaces = createNamespaces({ ...base, ...config, versions });
  const of_games = { identities, groups, namespaces, versions, datacenters };
  const games: Games = createGames({ ...base, ...config, ...of_games });
  const transfers = createTransfers(config);
  const directory = data.folder('compressed');
  const sites_shown = { games, namespaces, versions, sites, uploads, transfers, directory };
  const cdn = opened.use(await openCdn({ ...base, ...config, ...sites_shown }));
  const devices = createDevices({ ...base, games, public_url });
  const { isLow, check: checkSpace } = config.database_url === undefined ? space : UNLIMITED_SPACE;
  const logs = createLogs({ ...base, isSpaceLow: isLow });
  const servers = createServers({ ...base, builds, datacenters, logs });
  const { datacenter_id } = await datacenters.register(config.datacenter);
  const bootstrap_result = await bootstrap({ ...base, ...of_games, games, uploads, builds, with_demo: config.demo });
  const administrator_token_file = data.writeSecret('administrator-token', `${bootstrap_result.administrator_token}\n`);

  const node = {
    node_id: data.node_id,
    datacenter_id,
    api_url: local_url,
    is_root: process.getuid?.() === 0,
    ...config,
  };
  const onBreak = (destination: Destination) => events.emit({ event: 'outbound_target_rests', ...destination });
  const outbound = createOutbound({ allowed_private: config.outbound_allow, onBreak });
  const key = await loadKey(queries, clock, 'captcha');
  // Separate lanes, so that slow verification servers of games do not delay captchas.
  const asking = createOutbound({ allowed_private: [], onBreak });
  const captcha = createCaptcha({ ...base, ...config, namespaces, versions, outbound: asking, key });
  const verification = createVerification({ ...base, ...config, outbound, ip_database: ip_database ?? NO_IP_DATABASE });
  const lobbies: Lobbies = createLobbies({
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
    onLeft: () => lobby_work.wake(),
  });
  const exports = createExports({ lobbies, servers, links });

  const stopping = new AbortController();
  const describe = () => ({ app, routes });
  const rays = createRays();
  const routes = [
    ...lobbyRoutes(lobbies),
    ...lobbyGameServerRoutes(lobbies),
    ...queueRoutes(lobbies),
    ...lobbyCloudRoutes(lobbies, servers),
    ...captchaRoutes(captcha),
    ...exportRoutes(exports),
    ...billingRoutes(createBilling({ ...base, groups, games, servers })),
    ...serverRoutes(servers),
    ...buildRoutes(builds),
    ...siteRoutes(sites),
    ...uploadRoutes(uploads, games.tenants, transfers),
    ...gameRoutes(games),
    ...mediaRoutes({ media, games, groups, identities, public_url, transfers }),
    ...namespaceRoutes({ ...config, namespaces, admitToken: games.admitToken }),
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
    ...bootstrapRoutes(namespaces, () => bootstrap_result.demo, { ...config, version: VERSION }),
    ...deviceRoutes(devices),
    ...documentRoutes({ describe, version: RELEASE, examples: { values: EXAMPLES, keys: KEY_EXAMPLES }, public_url }),
    ...rayRoutes(rays),
    ...healthRoutes({
      checks: [
        () => checkDatabase(database),
        checkSpace,
        async () => (stopping.signal.aborted ? 'it is stopping' : undefined),
      ],
      warnings: storage_warning === undefined ? [] : [storage_warning],
    }),
  ];
  const addresses = createAddresses(config.trusted_proxies, config.proxy_secret);
  const limits = opened.use(await openLimits({ ...base, ...config.limits, epoch: await readEpoch(queries) }));
  const counting = createCounting({ ...base, addresses, limits });
  const admission = { ...base, ...config, routes, sites: cdn, tenants: games.tenants, addresses, limits, counting };
  const sockets = createSockets({ ...admission, cors: createCors([public_url, local_url]) });
  const app = createApp({ ...admission, sockets, rays, stopping: stopping.signal });
  const work: { stopped: Promise<void> }[] = [];
  const working = new AbortController();
  opened.defer(async () => {
    working.abort();
    await Promise.all(work.map(({ stopped }) => stopped));
    // Game servers that stay must not find the port free.
    if (!(await servers.isAnyOn(node.node_id).catch(() => true))) machine.releasePort();
  });
  await machine.answerBy({
    fetch: answerBy(app),
    websocket: sockets.handlers,
    evict: (port) => evictFromPort({ events, runtime, records: { database, clock, node } }, port),
  });
  opened.defer(async () => {
    stopping.abort();
    sockets.stop();
    watch.release();
    await machine.stopAnswering();
  });

  // Not before the port is open: work that waited for this start must not slow it down.
  const { signal } = working;
  const lobby_work = startReconcilingLobbies(
    { ...base, ...config, node_id: data.node_id, namespaces, versions, datacenters, servers },
    signal,
  );
  work.push(
    startReconcilingServers({ ...base, builds, runtime, logs, node, groupsOf: games.groupsOf }, signal),
    startMetering({ ...base, runtime, node }, signal),
    lobby_work,
    uploads.startCleaning(signal),
    identities.startForgetting(signal),
    startForgetting({ name: 'old-refresh-tokens', forget: identities.forgetRefreshTokens, signal, events }),
    startForgetting({ name: 'old-guests', forget: identities.forgetGuests, signal, events }),
    startForgetting({ name: 'old-invites', forget: groups.forgetInvites, signal, events }),
    startPlayerCounts({ ...base, groups, countPlayers: lobbies.countPlayers }, signal),
    space.startWatching(signal),
    startLimitingConnections({ ...config, events, signal }),
    startRetention({ ...base, ...config, lobbies, servers }, signal),
    captcha.startForgetting(signal),
    lobbies.receipts.startKeeping(signal),
    lobbies.queue.startKeeping(signal),
  );
  if (ip_database) work.push(ip_database.startReading({ signal, events }));

  const everything = opened.move();
  return {
    bootstrap_result,
    administrator_token_file,
    stopServers: () => servers.stopAllOf(node.node_id),
    [Symbol.asyncDispose]: () => everything.disposeAsync(),
  };
}
