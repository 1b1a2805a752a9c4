import { type Static, Type } from '@sinclair/typebox';
import { Timestamp, Uuid } from '../../platform/http/shapes.ts';
import { PORT_PROTOCOLS } from '../../platform/tokens/caller.ts';
import type { NamespaceRow, NamespaceVersionRow } from './tables.ts';

export const NamespaceNames = Type.Object({ display_name: Type.String(), name_id: Type.String() });

export const CreateNamespaceBody = Type.Object({
  display_name: Type.String(),
  name_id: Type.String(),
  version_id: Uuid,
});
export const CreateNamespaceAnswer = Type.Object({ namespace_id: Uuid });

export const NamespaceSummary = Type.Object({
  namespace_id: Uuid,
  create_ts: Timestamp,
  display_name: Type.String(),
  version_id: Uuid,
  name_id: Type.String(),
});

const Cdn = Type.Object({
  enable_domain_public_auth: Type.Boolean(),
  domains: Type.Array(Type.Unknown()),
  auth_type: Type.Literal('none'),
  auth_user_list: Type.Array(Type.Unknown()),
});

const MatchmakerLimits = Type.Object({
  lobby_count_max: Type.Integer(),
  max_players_per_client: Type.Integer(),
  max_players_per_client_vpn: Type.Integer(),
  max_players_per_client_proxy: Type.Integer(),
  max_players_per_client_tor: Type.Integer(),
  max_players_per_client_hosting: Type.Integer(),
});

export const NamespaceAnswer = Type.Object({
  namespace: Type.Composite([
    NamespaceSummary,
    Type.Object({
      config: Type.Object({
        cdn: Cdn,
        matchmaker: MatchmakerLimits,
        kv: Type.Object({}),
        identity: Type.Object({}),
      }),
    }),
  ]),
});

export const UpdateVersionBody = Type.Object({ version_id: Uuid });

export const VersionHistoryQuery = Type.Object({
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000 })),
});
export const VersionHistoryAnswer = Type.Object({
  versions: Type.Array(Type.Object({ namespace_id: Uuid, version_id: Uuid, deploy_ts: Timestamp })),
});

const Port = Type.Integer({ minimum: 0, maximum: 65_535 });

/** Specification: Development token port configuration. */
const DevelopmentPortBody = Type.Object({
  protocol: Type.Union(PORT_PROTOCOLS.map((protocol) => Type.Literal(protocol))),
  port: Type.Optional(Port),
  port_range: Type.Optional(Type.Object({ min: Port, max: Port })),
});

export const DevelopmentTokenBody = Type.Object({
  hostname: Type.String({ minLength: 1, maxLength: 255 }),
  ports: Type.Optional(Type.Record(Type.String(), DevelopmentPortBody)),
});
export type DevelopmentTokenBody = Static<typeof DevelopmentTokenBody>;

export const TokenAnswer = Type.Object({ token: Type.String() });

export function toNamespaceSummary(row: NamespaceRow): Static<typeof NamespaceSummary> {
  const { namespace_id, create_ts, display_name, version_id, name_id } = row;
  return { namespace_id, create_ts: create_ts.toISOString(), display_name, version_id, name_id };
}

export function toNamespace(row: NamespaceRow): Static<typeof NamespaceAnswer>['namespace'] {
  return {
    ...toNamespaceSummary(row),
    config: {
      cdn: {
        enable_domain_public_auth: row.enable_domain_public_auth,
        domains: [],
        auth_type: 'none',
        auth_user_list: [],
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
