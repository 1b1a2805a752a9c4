import type { openBase } from './base.ts';
import type { Config } from './config.ts';
import { openAudit } from './features/audit/feature.ts';
import { openBilling } from './features/billing/feature.ts';
import { openBootstrap } from './features/bootstrap/feature.ts';
import { openBuilds } from './features/builds/feature.ts';
import { openCaptcha } from './features/captcha/feature.ts';
import { openCdn } from './features/cdn/feature.ts';
import { openCertificates } from './features/certificates/feature.ts';
import { openCounters } from './features/counters/feature.ts';
import { openDatacenters } from './features/datacenters/feature.ts';
import { openDevices } from './features/devices/feature.ts';
import { openExports } from './features/exports/feature.ts';
import { openGames } from './features/games/feature.ts';
import type { Games } from './features/games/games.ts';
import { openGateway, openRelays } from './features/gateway/feature.ts';
import { openGroups } from './features/groups/feature.ts';
import type { Groups } from './features/groups/groups.ts';
import { openHub } from './features/hub/feature.ts';
import { openIdentities } from './features/identities/feature.ts';
import { openLobbies } from './features/lobbies/feature.ts';
import type { Lobbies } from './features/lobbies/lobbies.ts';
import { openMachines } from './features/machines/feature.ts';
import { openMedia } from './features/media/feature.ts';
import { openNamespaces } from './features/namespaces/feature.ts';
import type { Namespaces } from './features/namespaces/namespaces.ts';
import { openOperator } from './features/operator/feature.ts';
import { openRetention } from './features/retention/feature.ts';
import { evictFromPort } from './features/servers/eviction.ts';
import { type ClusterControl, openServers } from './features/servers/feature.ts';
import type { Servers } from './features/servers/servers.ts';
import { openShares } from './features/shares/feature.ts';
import type { Shares } from './features/shares/shares.ts';
import { openSites } from './features/sites/feature.ts';
import { openUploads } from './features/uploads/feature.ts';
import type { Uploads } from './features/uploads/uploads.ts';
import { openVerification } from './features/verification/feature.ts';
import { openVersions } from './features/versions/feature.ts';
import type { LocalParts } from './local-parts.ts';
import type { Feature } from './platform/feature.ts';
import { createTransfers } from './platform/http/transfers.ts';
import type { KeptEvents } from './platform/kept-events.ts';

type Foundation = Pick<Awaited<ReturnType<typeof openBase>>, 'base' | 'storage'> & {
  local_parts: LocalParts;
  /** The same events as those of the base, with the latest kept. */
  kept_events: KeptEvents;
  /** Ends a start that waits. */
  signal: AbortSignal | undefined;
};

/** What each step of `openFeatures` gets. */
interface StepContext {
  config: Config;
  local_parts: LocalParts;
  /** Adds a feature to those that are open, and returns its public API. */
  add<Api>(feature: Feature<Api>): Api;
  /** Closes what needs it, in reverse. */
  opened: AsyncDisposableStack;
}

/**
 * Opens all features in order, in four steps. A feature gets the features above it, and functions for what it needs of those
 * below. Each step returns what later features may use; the `feature.ts` of a feature names what it uses.
 */
export async function openFeatures(config: Config, { base, storage, local_parts, kept_events, signal }: Foundation) {
  const { database, clock, events } = base;
  const { data, runtime } = local_parts;
  await using opened = new AsyncDisposableStack();
  const features: Feature[] = [];
  const add = <Api>(feature: Feature<Api>): Api => {
    features.push(feature);
    return feature.api;
  };
  const context = { config, local_parts, add, opened };
  const endServersOnPort = (port: number) =>
    evictFromPort({ events, runtime, records: { database, clock, machine: data } }, port);

  const with_games = await openGameFeatures(context, shareBase(config, { base, storage, local_parts }), {
    buildsInUse: () => servers.buildsOn([data.node_id, machines.clusterId()].filter((one) => one !== undefined)),
    countPlayers: () => lobbies.countPlayers(),
    findShare: (share_id) => shares.find(share_id),
  });
  const with_sites = await openSiteFeatures(context, with_games, {
    namespaceOfLobby: (lobby_id) => lobbies.namespaceOf(lobby_id),
  });
  const shares: Shares = with_sites.shares;
  const with_servers = await openServerFeatures(context, with_sites, {
    endServersOnPort,
    signal,
    countLobbies: () => lobbies.countByMachine(),
  });
  const { servers, machines }: Pick<typeof with_servers, 'servers' | 'machines'> = with_servers;
  const with_lobbies = await openLobbyFeatures(context, { ...with_servers, kept_events });
  const lobbies: Lobbies = with_lobbies.lobbies;

  const { games, audit, cdn, gateway, certificates, machine, bootstrap, hub, operator } = with_lobbies;
  const everything = opened.move();
  return {
    features,
    tenants: games.tenants,
    audit: audit.recorder,
    cdn,
    gateway,
    certificates,
    servers,
    machines,
    machine,
    bootstrap,
    hub,
    operator,
    endServersOnPort,
    [Symbol.asyncDispose]: () => everything.disposeAsync(),
  };
}

/** Returns what all features share: the parts of the base, and the settings that several of them read. */
function shareBase(
  config: Config,
  { base, storage, local_parts }: Pick<Foundation, 'base' | 'storage' | 'local_parts'>,
) {
  const { public_url, local_url, host, own_hosts, server_host, sites_domain, servers_domain } = config;
  const { transfers_max, s3, limits, shared_captcha_keys, outbound_allow } = config;
  const { data } = local_parts;
  const addresses = { public_url, local_url, host, own_hosts, server_host, sites_domain, servers_domain };
  return {
    ...base,
    ...storage,
    ...addresses,
    data,
    node_id: data.node_id,
    transfers: createTransfers({ transfers_max, s3, limits }),
    limits,
    shared_captcha_keys,
    outbound_allow,
  };
}

type Shared = ReturnType<typeof shareBase>;

interface BelowGames {
  buildsInUse(): ReturnType<Servers['buildsOn']>;
  countPlayers: Lobbies['countPlayers'];
  findShare: Shares['find'];
}

/**
 * Opens identities, groups and games, and the features between them: datacenters, uploads, builds, sites, versions and
 * namespaces.
 */
async function openGameFeatures({ config, local_parts, add }: StepContext, shared: Shared, below: BelowGames) {
  const identities = add(
    await openIdentities({
      ...shared,
      groupsThatList: (tx, identity_id) => groups.groupsThatList(tx, identity_id),
      whichAreListed: (tx, identity_ids) => groups.whichAreListed(tx, identity_ids),
      isMemberOrAsksToJoin: (tx, identity_id) => groups.isMemberOrAsksToJoin(tx, identity_id),
      leaveGroups: (identity_id) => groups.leaveAll(identity_id),
      groupHandlesOf: (identity_id, viewer_id) => groups.handlesOf(identity_id, viewer_id),
      gameOf: async (namespace_id) => (await namespaces.find(namespace_id))?.game_id,
      discardPicture: (tx, upload_id) => uploads.discard(tx, upload_id),
    }),
  );
  const revokeTokensOf: Games['revokeTokensOf'] = (tx, group_id) => games.revokeTokensOf(tx, group_id);
  const groups: Groups = add(openGroups({ ...shared, identities, revokeTokensOf }));
  const datacenters = add(openDatacenters(shared));
  const authorize: Games['tenants']['authorize'] = (...asked) => games.tenants.authorize(...asked);
  const uploads: Uploads = add(openUploads({ ...shared, authorize }));
  const { buildsInUse, countPlayers, findShare } = below;
  const available = local_parts.cluster ?? local_parts.runtime;
  const builds = add(await openBuilds({ ...shared, ...config.builds, uploads, available, buildsInUse }));
  const sites = add(openSites({ ...shared, uploads }));
  const versions = add(openVersions({ ...shared, builds, sites, datacenters }));
  const authorizeTokenIssue: Games['authorizeTokenIssue'] = (caller, game_id) =>
    games.authorizeTokenIssue(caller, game_id);
  const namespaces: Namespaces = add(openNamespaces({ ...shared, ...config.domains, versions, authorizeTokenIssue }));
  const with_namespaces = { ...shared, identities, groups, datacenters, uploads, builds, sites, versions, namespaces };
  const games: Games = add(openGames({ ...with_namespaces, countPlayers, findShare }));
  return { ...with_namespaces, games };
}

type WithGames = Awaited<ReturnType<typeof openGameFeatures>>;

/**
 * Opens the other features for developers: share links, the audit log, pictures, device links, the hub, served sites
 * and certificates.
 */
async function openSiteFeatures(
  { config, add, opened }: StepContext,
  with_games: WithGames,
  { namespaceOfLobby }: { namespaceOfLobby: Lobbies['namespaceOf'] },
) {
  const { games, data } = with_games;
  const { authorizeTokenIssue, tokensNotBefore } = games;
  const shares: Shares = add(openShares({ ...with_games, authorizeTokenIssue, tokensNotBefore, namespaceOfLobby }));
  const audit = add(openAudit({ ...with_games, audit_days: config.audit_days, namespaceOfLobby }));
  add(openMedia({ ...with_games, picture_quota: config.picture_quota }));
  add(openDevices(with_games));
  const hub = add(openHub(with_games));
  const cdn = opened.use(add(await openCdn({ ...with_games, directory: data.folder('compressed') })));
  const certificates = add(await openCertificates({ ...with_games, ...config.tls.certificates }));
  return { ...with_games, shares, audit, hub, cdn, certificates };
}

type WithSites = Awaited<ReturnType<typeof openSiteFeatures>>;

interface BelowServers {
  endServersOnPort(port: number): ReturnType<typeof evictFromPort>;
  /** Ends a start that waits. */
  signal: AbortSignal | undefined;
  countLobbies: Lobbies['countByMachine'];
}

/** Opens this machine, the game servers on it, and the relays to them. */
async function openServerFeatures(
  { config, local_parts, add, opened }: StepContext,
  with_sites: WithSites,
  { endServersOnPort, signal, countLobbies }: BelowServers,
) {
  const { datacenters, games, node_id, database_space } = with_sites;
  // Before this machine is known as started, since a start may wait here for that of another process.
  const bootstrap = add(await openBootstrap({ ...with_sites, with_demo: config.demo, signal }));
  const { datacenter_id } = await datacenters.register(config.datacenter);
  const machine = { node_id, datacenter_id, api_url: local_parts.api_url, ...config.servers };
  const machines = add(
    await openMachines({
      ...with_sites,
      ...config.machines,
      signal,
      datacenter_id,
      has_cluster: local_parts.cluster !== undefined,
      endServersOf: (tx, lost_node_id) => servers.endWithLostMachine(tx, lost_node_id),
      countServers: () => servers.countByMachine(),
      countLobbies,
    }),
  );
  const { port: service_port, tls } = config;
  const { https_port, http_port } = tls;
  const relay_parts = openRelays({
    ...with_sites,
    ...config.gateway,
    service_port,
    https_port,
    http_port,
    endServersOnPort,
  });
  const relays = opened.use(relay_parts.relays);
  const with_machines = { ...with_sites, ...relay_parts, machines, machine, bootstrap };
  const { runtime, cluster } = local_parts;
  const { developerGroupsOf } = games;
  const runtime_parts = { runtime, cluster, developerGroupsOf, isSpaceLow: database_space.isLow };
  const servers: Servers & ClusterControl = opened.use(
    add(await openServers({ ...with_machines, ...config.servers, ...runtime_parts })),
  );
  // Before the service answers, which may name them.
  await relays.openOnly(await servers.listOn(node_id));
  const with_servers = { ...with_machines, servers };
  add(openBilling(with_servers));
  return with_servers;
}

type WithServers = Awaited<ReturnType<typeof openServerFeatures>>;

/**
 * Opens lobbies, the features that they use (captchas, verification, counters), and the features that use lobbies.
 */
async function openLobbyFeatures(
  { config, local_parts, add, opened }: StepContext,
  with_servers: WithServers & { kept_events: KeptEvents },
) {
  const { address_classes, ip_database } = local_parts;
  const { request_timeout_ms, transfers_max, servers } = config;
  const captcha = add(await openCaptcha({ ...with_servers, ...config.captcha }));
  const verification = add(openVerification({ ...with_servers, ...config.verification, ip_database }));
  const counters = add(openCounters({ ...with_servers, readPopulations: () => lobbies.countByNamespace() }));
  const own_region = config.datacenter.slug;
  const matchmaker_parts = { captcha, verification, counters, address_classes, own_region, request_timeout_ms };
  const lobbies: Lobbies = add(openLobbies({ ...with_servers, ...config.lobbies, ...matchmaker_parts }));
  const with_lobbies = { ...with_servers, lobbies };
  const { datacenter_id } = with_servers.machine;
  const gateway = opened.use(add(openGateway({ ...with_lobbies, ...config.gateway, datacenter_id })));
  add(openExports(with_lobbies));
  const { servers_max } = servers;
  const with_gateway = { ...with_lobbies, counters, gateway };
  const operator = add(openOperator({ ...with_gateway, ...config.gateway, servers_max, transfers_max }));
  add(openRetention({ ...with_lobbies, history_days: config.history_days }));
  return { ...with_gateway, operator };
}
