/** How Bun is told how many fetches a process may have under way at one time. */
const VARIABLE = 'BUN_CONFIG_MAX_HTTP_REQUESTS';
const FETCHES_MAX = 2_048;
/** Bun's number where the variable is not set. */
const FETCHES_DEFAULT = 256;

type Environment = Record<string, string | undefined>;

/** Downloads and uploads that may be under way: half of the fetches, so that slow clients cannot hold the others. */
export function transfersMaxOf(environment: Environment, { is_s3 }: { is_s3: boolean }): number {
  // Files on the disk take no fetch.
  return Math.ceil((is_s3 ? (readFetchesMax(environment) ?? FETCHES_DEFAULT) : FETCHES_MAX) / 2);
}

/** The environment of a process that may have more fetches under way; undefined when this one says how many. */
export function allowingMoreFetches(environment: Environment): Environment | undefined {
  if (readFetchesMax(environment) !== undefined) return undefined;
  return { ...environment, [VARIABLE]: String(FETCHES_MAX) };
}

function readFetchesMax(environment: Environment): number | undefined {
  const text = environment[VARIABLE] ?? '';
  return /^[1-9]\d{0,4}$/.test(text) ? Number(text) : undefined;
}
