/**
 * Settings that belong to one service, such as where it listens and keeps its data. Those in the environment are
 * another service's, so they are not taken over. Nor are DATABASE_URL and the other settings without MUSTER_.
 */
const RESERVED =
  /^MUSTER_(HOST|PORT|DATA|PUBLIC_URL|TLS_.*|ACME_.*|HTTPS?_PORT|TRUSTED_PROXIES|PROXY_SECRET|OWN_HOSTS|SITES_DOMAIN|SERVERS_DOMAIN|DOMAINS_ALLOW|NAME_SERVERS|SERVER_HOST|SERVER_PORTS|KUBERNETES.*)$/;

/** Defaults of a throwaway service. The environment overrides them. */
const DEFAULTS = {
  MUSTER_LOG: 'error',
  MUSTER_DEMO: 'off',
  MUSTER_LIMITS: 'off',
  // Everything comes from one address, and belongs to one group.
  MUSTER_CONNECTIONS_PER_ADDRESS_MAX: '1000000',
  MUSTER_SERVERS_PER_GROUP_MAX: '10000',
  MUSTER_DISK_RESERVE_MB: '0',
  // A suite's own server may verify players.
  MUSTER_OUTBOUND_ALLOW: '127.0.0.0/8, ::1',
};

/** What each throwaway service has for itself. */
export interface ThrowawayResources {
  data_directory: string;
  port: number;
  /** The range of its game servers. */
  server_ports: string;
}

/**
 * Returns the settings of a throwaway service: rules and limits are those of the environment, resources are its own. Empty
 * variables count as missing, and unknown settings stay, so that they are refused.
 */
export function throwawaySettings(
  environment: Record<string, string | undefined>,
  own: ThrowawayResources,
): Record<string, string | undefined> {
  const of_rules = Object.entries(environment).filter(
    ([name, value]) => name.startsWith('MUSTER_') && value !== '' && !RESERVED.test(name),
  );
  return {
    ...DEFAULTS,
    ...Object.fromEntries(of_rules),
    MUSTER_DATA: own.data_directory,
    MUSTER_PORT: String(own.port),
    MUSTER_SERVER_PORTS: own.server_ports,
  };
}
