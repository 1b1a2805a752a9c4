import { hostname } from 'node:os';
import type { openBase } from './base.ts';
import type { Config } from './config.ts';
import { openAudit } from './features/audit/feature.ts';
import { openBilling } from './features/billing/feature.ts';
import { openBootstrap } from './features/bootstrap/feature.ts';
import { openBaseImage } from './features/builds/builds.ts';
import { openBuilds } from './features/builds/feature.ts';
import { openCaptcha } from './features/captcha/feature.ts';
import { openCdn } from './features/cdn/cdn.ts';
import { openCertificates } from './features/certificates/feature.ts';
import { openCounters } from './features/counters/feature.ts';
import { openDatacenters } from './features/datacenters/feature.ts';
import { openDevices } from './features/devices/feature.ts';
import { openExports } from './features/exports/feature.ts';
import { openGames } from './features/games/feature.ts';
import type { Games } from './features/games/games.ts';
import { createAddresses } from './features/gateway/addresses.ts';
import { openGateway } from './features/gateway/feature.ts';
import { createRelays } from './features/gateway/relays/relays.ts';
import { createTraffic } from './features/gateway/traffic.ts';
import { openGroups } from './features/groups/feature.ts';
import type { Groups } from './features/groups/groups.ts';
import { openHub } from './features/hub/feature.ts';
import { openIdentities } from './features/identities/feature.ts';
import { openLobbies } from './features/lobbies/feature.ts';
import type { Lobbies } from './features/lobbies/lobbies.ts';
import { openMachines } from './features/machines/feature.ts';
import type { Load } from './features/machines/machines.ts';
import { openMedia } from './features/media/feature.ts';
import { openNamespaces } from './features/namespaces/feature.ts';
import type { Namespaces } from './features/namespaces/namespaces.ts';
import { openOperator } from './features/operator/feature.ts';
import type { UsedLimit } from './features/operator/operator.ts';
import { openRetention } from './features/retention/feature.ts';
import { evictFromPort } from './features/servers/eviction.ts';
import { openServers } from './features/servers/feature.ts';
import type { Servers } from './features/servers/servers.ts';
import { openShares } from './features/shares/feature.ts';
import type { Shares } from './features/shares/shares.ts';
import { openSites } from './features/sites/feature.ts';
import { openUploads } from './features/uploads/feature.ts';
import type { Uploads } from './features/uploads/uploads.ts';
import { createVerification } from './features/verification/verification.ts';
import { openVersions } from './features/versions/feature.ts';
import type { Machine } from './machine.ts';
import type { Feature } from './platform/feature.ts';
import { createTransfers } from './platform/http/transfers.ts';
import { NO_IP_DATABASE } from './platform/ip-database.ts';
import type { KeptEvents } from './platform/kept-events.ts';
import { createOutbound, type Destination } from './platform/outbound/outbound.ts';
import { loadKey } from './platform/tokens/keys.ts';
import { VERSION } from './platform/version.ts';

type Foundation = Pick<Awaited<ReturnType<typeof openBase>>, 'base' | 'storage'> & {
  machine: Machine;
  /** Those of the base, which are kept. */
  kept_events: KeptEvents;
  /** Ends a start that waits. */
  signal: AbortSignal | undefined;
};

/** Opens all features in order. A feature uses those above it directly, and those below it through small functions. */
export async function openFeatures(config: Config, { base, storage, machine, kept_events, signal }: Foundation) {
  const { database, clock, events } = base;
  const { space, objects, presigner, links } = storage;
  const { data, runtime, address_classes, ip_database = NO_IP_DATABASE } = machine;
  const { public_url, local_url, host, own_hosts, server_host, sites_domain, servers_domain, datacenter } = config;
  const { transfers_max, s3, limits, shared_captcha_keys, picture_quota, outbound_allow } = config;
  const { node_id } = data;
  await using opened = new AsyncDisposableStack();
  const features: Feature[] = [];
  const add = <Api>(feature: Feature<Api>): Api => {
    features.push(feature);
    return feature.api;
  };
  const keyOf = (name: 'refresh' | 'captcha') => loadKey(database.queries, clock, name);
  const transfers = createTransfers({ transfers_max, s3, limits });
  const onBreak = (destination: Destination) => events.emit({ event: 'outbound_target_paused', ...destination });

  const identities = add(
    openIdentities({
      ...base,
      refresh_key: await keyOf('refresh'),
      public_url,
      groupsListing: (tx, identity_id) => groups.groupsListing(tx, identity_id),
      listedInGroups: (tx, identity_ids) => groups.listed(tx, identity_ids),
      leaveGroups: (identity_id) => groups.leaveAll(identity_id),
      groupsOf: (identity_id) => groups.handlesOf(identity_id),
      gameOf: async (namespace_id) => (await namespaces.find(namespace_id))?.game_id,
      discardPicture: (tx, upload_id) => uploads.discard(tx, upload_id),
    }),
  );
  const groups: Groups = add(
    openGroups({
      ...base,
      identities,
      public_url,
      revokeTokensOf: (tx, group_id) => games.revokeTokensOf(tx, group_id),
    }),
  );
  const datacenters = add(openDatacenters(base));
  const uploads: Uploads = add(
    openUploads({ ...base, objects, presigner, transfers, authorize: (...asked) => games.tenants.authorize(...asked) }),
  );
  const directory = data.folder('builds');
  const { container_base_file: file } = config;
  const has_base_image = file !== undefined && runtime.kinds.includes('oci_bundle');
  const base_image = has_base_image ? await openBaseImage({ file, directory }) : undefined;
  const builds = add(
    openBuilds({
      ...base,
      uploads,
      links,
      transfers,
      space,
      available: runtime,
      directory,
      base_image,
      ...config.builds,
      buildsInUse: () => servers.buildsOn(node_id),
    }),
  );
  const sites = add(openSites({ ...base, uploads }));
  const versions = add(openVersions({ ...base, builds, sites, datacenters, shared_captcha_keys, outbound_allow }));
  const namespaces: Namespaces = add(
    openNamespaces({
      ...base,
      versions,
      public_url,
      local_url,
      host,
      own_hosts,
      server_host,
      sites_domain,
      servers_domain,
      ...config.domains,
      admitToken: (caller, game_id) => games.admitToken(caller, game_id),
    }),
  );
  const games: Games = add(
    openGames({
      ...base,
      identities,
      groups,
      namespaces,
      versions,
      datacenters,
      public_url,
      sites_domain,
      countPlayers: () => lobbies.countPlayers(),
      findShare: (share_id) => shares.find(share_id),
    }),
  );
  const shares: Shares = add(
    openShares({
      ...base,
      public_url,
      admitToken: (caller, game_id) => games.admitToken(caller, game_id),
      namespaceOfLobby: (lobby) => lobbies.namespaceOf(lobby),
    }),
  );
  const audit = add(
    openAudit({
      ...base,
      identities,
      groups,
      audit_days: config.audit_days,
      gameOfUpload: async (upload_id) => (await uploads.get(upload_id)).game_id ?? undefined,
      namespaceOfLobby: (lobby) => lobbies.namespaceOf(lobby),
    }),
  );
  add(openMedia({ ...base, uploads, identities, groups, games, transfers, picture_quota, public_url }));
  add(openDevices({ ...base, games, public_url }));
  const hub = add(openHub({ ...base, games, identities, public_url }));
  const served = { games, namespaces, versions, sites, uploads, transfers, space };
  const cdn = opened.use(await openCdn({ ...base, ...served, directory: data.folder('compressed'), sites_domain }));

  const certificates = add(await openCertificates({ ...base, data, ...config.tls.certificates }));
  const { port, tls } = config;
  const addressOf = createAddresses({ ...tls, port, servers_domain, public_url, certificates });

  const { datacenter_id } = await datacenters.register(datacenter);
  const machines = add(
    await openMachines({
      ...base,
      ...config.machines,
      signal,
      own: { node_id, datacenter_id, name: hostname(), place: data.place, data_directory: data.path },
      endServersOf: (tx, lost_node_id) => servers.giveUpWith(tx, lost_node_id),
      requireAdministrator: (caller) => identities.requireAdministrator(caller),
      async loads() {
        const [of_servers, of_lobbies] = await Promise.all([servers.countByMachine(), lobbies.countByMachine()]);
        const NONE = { lobbies: 0, players: 0 };
        return new Map<string, Load>(
          [...of_servers].map(([id, count]) => [id, { servers: count, ...(of_lobbies.get(id) ?? NONE) }]),
        );
      },
    }),
  );
  const bootstrap = add(
    await openBootstrap({
      ...base,
      identities,
      groups,
      games,
      namespaces,
      versions,
      uploads,
      builds,
      with_demo: config.demo,
      public_url,
      server_host,
      sites_domain,
      shared_captcha_keys,
      version: VERSION,
    }),
  );

  const traffic = createTraffic({ limits, bytes_a_minute: config.bytes_a_minute });
  const relays = opened.use(
    createRelays({
      certificates,
      events,
      servers_domain,
      limits,
      server_host,
      traffic,
      proxy_protocol: config.relay_proxy_protocol,
      evict: (port) => evictFromPort({ events, runtime, records: { database, clock, node: { node_id } } }, port),
    }),
  );
  const node = { node_id, datacenter_id, api_url: local_url, ...config.servers };
  const { groupsOf } = games;
  const servers: Servers = add(
    openServers({
      ...base,
      builds,
      datacenters,
      runtime,
      node,
      groupsOf,
      addressOf,
      relays,
      machines,
      isSpaceLow: storage.database_space.isLow,
      disk_max: config.servers.disk_max,
    }),
  );
  // Before the service answers, which may name them.
  await relays.keep(await servers.listOn(node_id));
  add(openBilling({ ...base, groups, games, servers }));

  const captcha = add(
    openCaptcha({
      ...base,
      namespaces,
      versions,
      key: await keyOf('captcha'),
      public_url,
      shared_captcha_keys,
      ...config.captcha,
      // Separate bulkheads, so that slow verification servers of games do not delay captchas.
      outbound: createOutbound({ allowed_private: [], onBreak }),
    }),
  );
  const verification = createVerification({
    clock,
    ip_database,
    verification_timeout_ms: config.verification_timeout_ms,
    outbound: createOutbound({ allowed_private: outbound_allow, onBreak }),
  });
  const counters = add(
    openCounters({
      ...base,
      countLobbies: () => lobbies.countByNamespace(),
      requireAdministrator: (caller) => identities.requireAdministrator(caller),
    }),
  );
  const lobbies: Lobbies = add(
    openLobbies({
      ...base,
      captcha,
      namespaces,
      versions,
      datacenters,
      servers,
      machines,
      verification,
      address_classes,
      counters,
      node_id,
      addressOf,
      own_region: datacenter.slug,
      request_timeout_ms: config.request_timeout_ms,
      ...config.lobbies,
    }),
  );
  const gateway = opened.use(
    add(
      openGateway({
        ...base,
        servers,
        lobbies,
        machines,
        node_id,
        datacenter_id,
        servers_domain,
        relays,
        traffic,
        drain_ms: config.drain_ms,
        limits,
        requests_max: config.gateway_requests_max,
        has_remote_servers: runtime.has_remote_servers ?? false,
      }),
    ),
  );
  add(openExports({ lobbies, servers, links }));
  const operator = add(
    openOperator({
      ...base,
      events: kept_events,
      own: { machine_id: node_id, host: hostname(), version: VERSION },
      certificates,
      requireAdministrator: (caller) => identities.requireAdministrator(caller),
      countWaiting: () => lobbies.queue.lengths(),
      async namesOf(namespace_id) {
        const namespace = await namespaces.find(namespace_id);
        const game = namespace && (await games.get(namespace.game_id));
        return game && { game_id: game.game_id, game_name_id: game.name_id, namespace_name_id: namespace.name_id };
      },
      countServers: async () => (await servers.countByMachine()).get(node_id) ?? 0,
      servers_max: config.servers.servers_max,
      readLimits(): UsedLimit[] {
        const { requests, sockets } = gateway.count();
        return [
          { name: 'gateway_requests', used: requests, max: config.gateway_requests_max },
          { name: 'gateway_sockets', used: sockets },
          { name: 'relayed_connections', used: relays.count(), max: relays.count_max },
          { name: 'transfers', used: transfers.count(), max: transfers_max },
        ];
      },
    }),
  );
  add(openRetention({ ...base, lobbies, servers, history_days: config.history_days }));

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
    node,
    bootstrap,
    hub,
    operator,
    [Symbol.asyncDispose]: () => everything.disposeAsync(),
  };
}
