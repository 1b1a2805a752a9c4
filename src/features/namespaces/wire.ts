import { type Static, Type } from '@sinclair/typebox';
import { Moment } from '../../platform/http/moments.ts';
import { Empty, mapOf, oneOf, Text, Timestamp, U32, Uuid } from '../../platform/http/shapes.ts';
import type { DevelopmentPort } from '../../platform/tokens/caller.ts';
import { PortRange, Protocol } from '../ports.ts';
import type { DomainRow, NamespaceRow, NamespaceVersionRow } from './tables.ts';

export const NamespaceNames = Type.Object({ display_name: Text, name_id: Text });

export const CreateNamespaceBody = Type.Object({
  display_name: Text,
  name_id: Text,
  version_id: Uuid,
});
export const CreateNamespaceAnswer = Type.Object({ namespace_id: Uuid });

export const NamespaceSummary = Type.Object(
  {
    namespace_id: Uuid,
    create_ts: Timestamp,
    display_name: Type.String(),
    version_id: Uuid,
    name_id: Type.String(),
  },
  { title: 'NamespaceSummary' },
);

const AuthType = oneOf('CdnAuthType', ['none', 'basic']);

const Domain = Type.Object(
  {
    domain: Type.String(),
    create_ts: Timestamp,
    verification_status: oneOf('DomainStatus', ['active', 'pending', 'failed']),
    verification_method: Type.Object({ http: Type.Object({ cname_record: Type.String() }) }),
    verification_errors: Type.Array(Type.String()),
  },
  { title: 'Domain' },
);

const Cdn = Type.Object(
  {
    enable_domain_public_auth: Type.Boolean(),
    domains: Type.Array(Domain),
    auth_type: AuthType,
    auth_user_list: Type.Array(Type.Object({ user: Type.String() }, { title: 'CdnUser' })),
  },
  { title: 'NamespaceCdn' },
);

const MatchmakerLimits = Type.Object(
  {
    lobby_count_max: Type.Integer(),
    max_players_per_client: Type.Integer(),
    max_players_per_client_vpn: Type.Integer(),
    max_players_per_client_proxy: Type.Integer(),
    max_players_per_client_tor: Type.Integer(),
    max_players_per_client_hosting: Type.Integer(),
  },
  { title: 'MatchmakerLimits' },
);

const NamespaceConfig = Type.Object(
  { cdn: Cdn, matchmaker: MatchmakerLimits, kv: Empty, identity: Empty },
  { title: 'NamespaceConfig' },
);

export const NamespaceAnswer = Type.Object({
  namespace: Type.Object({ ...NamespaceSummary.properties, config: NamespaceConfig }, { title: 'Namespace' }),
});

/** Wider than the rules allow (specification: u32), so that their error can give the path of a number out of range. */
export const MatchmakerLimitsBody = Type.Object({ lobby_count_max: U32, max_players: U32 });
export const DomainPublicAuthBody = Type.Object({ enabled: Type.Boolean() });
export const CdnAuthBody = Type.Object({ auth_type: AuthType });
export const AuthUserBody = Type.Object({ user: Text, password: Type.String({ maxLength: 255 }) });
export const DomainBody = Type.Object({ domain: Type.String({ maxLength: 1_024 }) });

export const UpdateVersionBody = Type.Object({ version_id: Uuid });

export const VersionHistoryQuery = Type.Object({
  anchor: Type.Optional({
    ...Moment,
    description: 'The deploy_ts of the last version of the previous page.',
    examples: ['2026-01-01T12:00:00.000Z'],
  }),
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000 })),
});
export const VersionHistoryAnswer = Type.Object({
  versions: Type.Array(
    Type.Object({ namespace_id: Uuid, version_id: Uuid, deploy_ts: Timestamp }, { title: 'NamespaceVersion' }),
  ),
});

/** More than the rules allow, so that their error can name the problem. */
const LISTED_PORTS_MAX = 256;

const Port = Type.Integer({ minimum: 0, maximum: 65_535 });

/** Specification: Development token port configuration. */
const DevelopmentPortBody = Type.Object(
  {
    protocol: Protocol,
    port: Type.Optional(Port),
    port_range: Type.Optional(PortRange),
  },
  { title: 'DevelopmentPort' },
);

/** The list of ports that older clients send. */
const LobbyPorts = Type.Array(
  Type.Object(
    {
      label: Text,
      target_port: Type.Optional(Port),
      port_range: Type.Optional(PortRange),
      proxy_protocol: Protocol,
    },
    { title: 'DevelopmentLobbyPort' },
  ),
  { maxItems: LISTED_PORTS_MAX },
);

export const DevelopmentTokenBody = Type.Object({
  hostname: Type.String({ minLength: 1, maxLength: 255 }),
  ports: Type.Optional(mapOf(DevelopmentPortBody, LISTED_PORTS_MAX)),
  lobby_ports: Type.Optional(LobbyPorts),
});
export type DevelopmentTokenBody = Static<typeof DevelopmentTokenBody>;

export const TokenAnswer = Type.Object({ token: Type.String() });

export function toNamespaceSummary(row: NamespaceRow): Static<typeof NamespaceSummary> {
  const { namespace_id, create_ts, display_name, version_id, name_id } = row;
  return { namespace_id, create_ts: create_ts.toISOString(), display_name, version_id, name_id };
}

/** Returns the ports of a development token from either form of the request. */
export function readDevelopmentPorts({
  ports,
  lobby_ports,
}: Omit<DevelopmentTokenBody, 'hostname'>): DevelopmentPort[] {
  const listed = ports
    ? Object.entries(ports).map(([label, port]) => ({ ...port, label }))
    : (lobby_ports ?? []).map((port) => ({ ...port, port: port.target_port, protocol: port.proxy_protocol }));
  return listed.map(({ label, protocol, port, port_range }) => ({
    label,
    protocol,
    ...(port === undefined ? {} : { port }),
    ...(port_range ? { port_range: { min: port_range.min, max: port_range.max } } : {}),
  }));
}

/** Returns a namespace with its settings. `cname`: the host name that a DNS record for a domain can point to. */
export function toNamespace(
  row: NamespaceRow,
  cdn: { domains: DomainRow[]; user_names: string[] },
  cname: string,
): Static<typeof NamespaceAnswer>['namespace'] {
  return {
    ...toNamespaceSummary(row),
    config: {
      cdn: {
        enable_domain_public_auth: row.enable_domain_public_auth,
        domains: cdn.domains.map(({ domain, create_ts }) => ({
          domain,
          create_ts: create_ts.toISOString(),
          // A domain is added only once it is proven, or if the operator allows it.
          verification_status: 'active',
          verification_method: { http: { cname_record: cname } },
          verification_errors: [],
        })),
        auth_type: row.auth_type,
        auth_user_list: cdn.user_names.map((user) => ({ user })),
      },
      matchmaker: {
        lobby_count_max: row.lobby_count_max,
        max_players_per_client: row.max_players_per_client,
        max_players_per_client_vpn: row.max_players_per_client_vpn,
        max_players_per_client_proxy: row.max_players_per_client_proxy,
        max_players_per_client_tor: row.max_players_per_client_tor,
        max_players_per_client_hosting: row.max_players_per_client_hosting,
      },
      kv: {},
      identity: {},
    },
  };
}

export function toDeployment({ namespace_id, version_id, deploy_ts }: NamespaceVersionRow) {
  return { namespace_id, version_id, deploy_ts: deploy_ts.toISOString() };
}
