/** The variable that tells Bun how many fetches may be under way at one time. */
const VARIABLE = 'BUN_CONFIG_MAX_HTTP_REQUESTS';
const FETCHES_MAX = 2_048;
/** Bun's default. */
const FETCHES_DEFAULT = 256;

type Environment = Record<string, string | undefined>;

/** Returns how many transfers may be under way: half of the fetches, so that slow clients cannot use up all. */
export function transfersMaxOf(environment: Environment, { is_s3 }: { is_s3: boolean }): number {
  // Files on the disk need no fetch.
  return Math.ceil((is_s3 ? (readFetchesMax(environment) ?? FETCHES_DEFAULT) : FETCHES_MAX) / 2);
}

/** Returns the environment of a process with more fetches; undefined if this process's environment sets their number. */
export function allowingMoreFetches(environment: Environment): Environment | undefined {
  if (readFetchesMax(environment) !== undefined) return undefined;
  return { ...environment, [VARIABLE]: String(FETCHES_MAX) };
}

function readFetchesMax(environment: Environment): number | undefined {
  const text = environment[VARIABLE] ?? '';
  return /^[1-9]\d{0,4}$/.test(text) ? Number(text) : undefined;
}
