/** The matchmaker has two addresses: below the base, and the specification's {matchmaker_url}/v1. */
export const PREFIXES = ['/matchmaker', '/v1'] as const;

export type Prefix = (typeof PREFIXES)[number];
