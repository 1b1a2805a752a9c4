/** The matchmaker has two addresses: below the base, and the specification's {matchmaker_url}/v1. */
export const PREFIXES = ['/matchmaker', '/v1'] as const;

export type Prefix = (typeof PREFIXES)[number];

/** What a lobby's server calls when it takes players; named where that is missing. */
export const READY_CALL = 'POST /matchmaker/lobbies/ready';

/** Returns the name of an operation at a prefix: `findLobby` below the base, `findLobbyV1` at the specification's. */
export const nameAt = (prefix: Prefix, operation: string): string => (prefix === '/v1' ? `${operation}V1` : operation);
