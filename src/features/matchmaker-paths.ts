/** The matchmaker has two addresses: /matchmaker, and the specification's {matchmaker_url}/v1. */
export const PREFIXES = ['/matchmaker', '/v1'] as const;

export type Prefix = (typeof PREFIXES)[number];

/** The call by which a lobby's server reports that it takes players, as messages name it. */
export const READY_CALL = 'POST /matchmaker/lobbies/ready';

/** Returns the name of an operation at a prefix: `findLobby` at /matchmaker, `findLobbyV1` at /v1. */
export const nameAt = (prefix: Prefix, operation: string): string => (prefix === '/v1' ? `${operation}V1` : operation);
