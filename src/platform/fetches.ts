/** The environment variable with Bun's maximum of concurrent fetches. */
const VARIABLE = 'BUN_CONFIG_MAX_HTTP_REQUESTS';
const FETCHES_MAX = 4_096;
/** Bun's default. */
const FETCHES_DEFAULT = 256;

/** The share of all fetches for requests to game servers. */
const GATEWAY_SHARE = 3 / 8;

type Environment = Record<string, string | undefined>;

/** Returns the maximum of concurrent transfers: half of the fetches, so that slow clients cannot use them all. */
export function transfersMaxOf(environment: Environment, { is_s3 }: { is_s3: boolean }): number {
  // Files on the disk need no fetch.
  return Math.ceil((is_s3 ? (readFetchesMax(environment) ?? FETCHES_DEFAULT) : FETCHES_MAX) / 2);
}

/** Returns the maximum of concurrent requests to game servers, so that slow ones cannot use all fetches. */
export function gatewayRequestsMaxOf(environment: Environment): number {
  return Math.ceil((readFetchesMax(environment) ?? FETCHES_DEFAULT) * GATEWAY_SHARE);
}

/** Returns an environment with a higher maximum of fetches; undefined if the given one sets it already. */
export function withMoreFetches(environment: Environment): Environment | undefined {
  if (readFetchesMax(environment) !== undefined) return undefined;
  return { ...environment, [VARIABLE]: String(FETCHES_MAX) };
}

function readFetchesMax(environment: Environment): number | undefined {
  const text = environment[VARIABLE] ?? '';
  return /^[1-9]\d{0,4}$/.test(text) ? Number(text) : undefined;
}
